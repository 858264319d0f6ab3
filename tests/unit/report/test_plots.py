"""Figures: what is drawn is what the models and curves say, worked out another way."""

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve
from sklearn.tree import DecisionTreeClassifier

import discriminant as dd
from discriminant.decision import risk_coverage
from discriminant.errors import (
    LibraryMissingError,
    MaskedClassWarning,
    NotSeparatedWarning,
    OptionError,
    PlotError,
)
from discriminant.report.plots.roc import roc_band
from tests.shared.paths import ROOT

GALLERY = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))
IRIS = load_iris()
KINDS = IRIS.target_names[IRIS.target]
SEPALS = IRIS.data[:, :2]
TWO = IRIS.target > 0  # versicolor and virginica


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(autouse=True)
def no_figure_is_left_open():
    """None of these functions may touch pyplot's figures where it is given Axes."""
    before, style = plt.get_fignums(), dict(matplotlib.rcParams)
    yield
    assert plt.get_fignums() == before
    assert dict(matplotlib.rcParams) == style


def vertices(ax):
    """Of all border lines."""
    (found,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    return np.concatenate(found.get_segments())


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def scatters(ax):
    return [c for c in ax.collections if isinstance(c, PathCollection)]


# --- borders -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [dd.LDA(), dd.QDA(), dd.Logistic(), QuadraticDiscriminantAnalysis()],
    ids=lambda model: type(model).__module__.partition(".")[0] + type(model).__name__,
)
def test_the_border_lies_where_the_two_posteriors_are_equal(model, ax):
    model.fit(SEPALS[TWO], KINDS[TWO])
    dd.plot_boundary(model, SEPALS[TWO], KINDS[TWO], ax=ax)
    assert np.ptp(model.predict_proba(vertices(ax)), axis=1).max() < 1e-6


def test_three_classes_meet_within_a_cell_and_elsewhere_the_best_two_are_equal(ax):
    model = dd.LDA().fit(SEPALS, KINDS)
    dd.plot_boundary(model, SEPALS, KINDS, ax=ax)
    best = np.sort(model.predict_proba(vertices(ax)), axis=1)[:, ::-1]
    gap = best[:, 0] - best[:, 1]
    assert (gap > 1e-6).sum() <= 3 and gap.max() < 0.02


def test_a_border_under_costs_lies_where_expected_costs_are_equal(ax):
    labels = KINDS[TWO]
    cost = {"versicolor": {"virginica": 5}, "virginica": {"versicolor": 1}}
    model = dd.Decision(dd.LDA(), cost=cost).fit(SEPALS[TWO], labels)
    dd.plot_boundary(model, SEPALS[TWO], labels, ax=ax)
    np.testing.assert_allclose(model.predict_proba(vertices(ax))[:, 1], 1 / 6, atol=1e-6)


def test_the_reject_region_is_where_the_decision_is_to_reject(ax):
    model = dd.Decision(dd.LDA(), reject=0.2).fit(SEPALS, KINDS)
    dd.plot_boundary(model, SEPALS, KINDS, ax=ax, nodes=61)
    x, y = (np.linspace(*limits, 61) for limits in (ax.get_xlim(), ax.get_ylim()))
    nodes = np.array([(a, b) for b in y for a in x])
    drawn = ax.images[0].get_array().reshape(-1) == 3  # after the three classes
    np.testing.assert_array_equal(drawn, model.decide(nodes) == dd.REJECT)
    assert legend(ax) == [*IRIS.target_names, "rejected"]


def test_other_features_are_held_at_their_mean_and_the_title_says_how_many(ax):
    X, y = IRIS.data[TWO], KINDS[TWO]
    model = dd.LDA().fit(X, y)
    dd.plot_boundary(model, X, y, features=(3, 1), ax=ax)
    rows = np.tile(X.mean(axis=0), (len(vertices(ax)), 1))
    rows[:, [3, 1]] = vertices(ax)
    assert np.ptp(model.predict_proba(rows), axis=1).max() < 1e-6
    assert "2 other features held at the mean" in ax.get_title()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_category_beside_the_axes_is_held_at_its_most_frequent_level(frame, ax):
    X, y = SEPALS[TWO], KINDS[TWO]
    plot = np.where(np.arange(len(y)) % 3 == 0, "north", "south")
    rows = frame({"length": X[:, 0], "plot": plot, "width": X[:, 1]})
    model = dd.Encoded(dd.LDA()).fit(rows, y)
    dd.plot_boundary(model, rows, y, features=("length", "width"), ax=ax)
    at = vertices(ax)
    here = frame({"length": at[:, 0], "plot": ["south"] * len(at), "width": at[:, 1]})
    assert np.ptp(model.predict_proba(here), axis=1).max() < 1e-6


def test_borders_of_steps_are_found_as_exactly_as_those_of_lines(ax):
    model = DecisionTreeClassifier(max_depth=1).fit(SEPALS[TWO], KINDS[TWO])
    dd.plot_boundary(model, SEPALS[TWO], KINDS[TWO], ax=ax)
    axis, cut = model.tree_.feature[0], model.tree_.threshold[0]
    np.testing.assert_allclose(vertices(ax)[:, axis], cut, atol=1e-5)  # float32 in a tree


def test_a_window_is_shown_whole(ax):
    model = dd.LDA().fit(SEPALS, KINDS)
    dd.plot_boundary(model, SEPALS, KINDS, window=((0, 10), (-1, 8)), ax=ax)
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 10), (-1, 8))


# --- projection ----------------------------------------------------------------------------------


def test_an_ellipse_has_the_axes_of_its_class_covariance(ax):
    wine = load_wine()
    model = dd.Fisher().fit(wine.data, wine.target)
    dd.plot_projection(model, wine.data, wine.target, sd=1.5, ax=ax)
    outlines = [p for p in ax.patches if isinstance(p, Ellipse)][::2]
    along = model.transform(wine.data)
    for k, found in enumerate(outlines):
        turn = np.radians(found.angle)
        axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        half = np.array([found.width, found.height]) / 2 / 1.5
        np.testing.assert_allclose(axes * half**2 @ axes.T, np.cov(along[wine.target == k].T))
    assert len(outlines) == 3 and "1.5 sd" in ax.get_title()


def test_along_one_direction_the_border_is_the_threshold_of_fisher(ax):
    tumour = load_breast_cancer()
    model = dd.Fisher().fit(tumour.data, tumour.target)
    dd.plot_projection(model, tumour.data, tumour.target, ax=ax)
    (line,) = [line for line in ax.lines if line.get_label() == "boundary"]
    assert line.get_xdata()[0] == pytest.approx(model.threshold_)
    assert legend(ax) == ["0", "1", "boundary"]


# --- ROC -----------------------------------------------------------------------------------------


def scored(rows=120, seed=0):
    draw = np.random.default_rng(seed)
    y = np.repeat([0, 1], (rows - rows // 3, rows // 3))
    return y, (draw.normal(y * 1.2, 1.0)).round(1)  # rounded, so that there are ties


def test_the_roc_line_is_that_of_scikit_learn(ax):
    y, scores = scored()
    dd.plot_roc(y, scores, ax=ax)
    x, height = ax.lines[0].get_data()
    fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    theirs = {(round(a, 12), round(b, 12)) for a, b in zip(fpr, tpr, strict=True)}
    ours = [(round(a, 12), round(b, 12)) for a, b in zip(x, height, strict=True)]
    assert set(ours) <= theirs and ours[0] == (0, 0) and ours[-1] == (1, 1)
    assert np.trapezoid(height, x) == pytest.approx(roc_auc_score(y, scores))
    assert legend(ax)[0].startswith(f"AUC {roc_auc_score(y, scores):.3f}")


def test_thresholds_are_marked_where_rows_at_or_above_them_are_called_positive(ax):
    y, scores = scored()
    dd.plot_roc(y, scores, thresholds=[0.5, 1.5], ax=ax)
    marked = scatters(ax)[0].get_offsets()
    shares = [[(scores[y == k] >= t).mean() for k in (0, 1)] for t in (0.5, 1.5)]
    np.testing.assert_allclose(marked, shares)


def test_the_mark_by_default_is_at_the_largest_difference_of_the_rates(ax):
    y, scores = scored()
    dd.plot_roc(y, scores, ax=ax)
    fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    (point,) = scatters(ax)[0].get_offsets()
    assert point[1] - point[0] == pytest.approx((tpr - fpr).max())


def test_the_band_holds_the_true_point_of_a_threshold_as_often_as_it_says():
    from scipy.stats import norm

    held = 0
    for seed in range(300):
        draw = np.random.default_rng(seed)
        y = np.repeat([0, 1], (50, 30))
        curve = dd.roc(y, draw.normal(y * 1.0, 1.0))
        rates, low, high = roc_band(curve, (30, 50), level=0.9)
        fpr, tpr = norm.sf(0.5), norm.sf(-0.5)  # of the threshold 0.5
        after = np.searchsorted(rates, fpr)
        held += low[after - 1] <= tpr <= high[after]
    assert held >= 0.9 * 300


def test_a_ranking_gives_the_band_and_line_of_its_rows(ax):
    y, scores = scored()
    dd.plot_roc(y, scores, ax=ax)
    again = dd.plot_roc(dd.ranking(y, scores, positive=1), ax=Figure().subplots())
    np.testing.assert_allclose(ax.lines[0].get_xydata(), again.lines[0].get_xydata())
    bands = [a.collections[0].get_paths()[0].vertices for a in (ax, again)]
    np.testing.assert_allclose(*bands)


def test_columns_of_scores_have_a_curve_of_each_class_against_all_others(ax):
    held = dd.cross_validate(dd.LDA(), SEPALS, KINDS, 5)
    dd.plot_roc(KINDS, held.log_posterior, classes=held.labels, ax=ax)
    areas = [roc_auc_score(k == KINDS, held.log_posterior[:, i]) for i, k in enumerate(held.labels)]
    told = [f"{k}: AUC {a:.3f}" for k, a in zip(held.labels, areas, strict=True)]
    assert [text.partition(" (")[0] for text in legend(ax)[:3]] == told


# --- confusion, surface --------------------------------------------------------------------------


def test_the_cells_of_a_confusion_matrix_are_the_counts(ax):
    held = dd.cross_validate(dd.LDA(), SEPALS, KINDS, 5)
    dd.plot_confusion(held, ax=ax)
    cells = np.array([int(t.get_text()) for t in ax.texts]).reshape(3, 3)
    np.testing.assert_array_equal(cells.T, confusion_matrix(KINDS, held.predicted))
    assert [t.get_text() for t in ax.get_yticklabels()] == [*IRIS.target_names]


def test_rejected_rows_have_a_line_of_their_own(ax):
    model = dd.Decision(dd.LDA(), reject=0.2).fit(SEPALS, KINDS)
    dd.plot_confusion(dd.evaluate(model, SEPALS, KINDS), transpose=True, ax=ax)
    cells = np.array([int(t.get_text()) for t in ax.texts]).reshape(3, 4)
    refused = model.decide(SEPALS) == dd.REJECT
    np.testing.assert_array_equal(cells[:, 3], [refused[k == KINDS].sum() for k in model.classes_])
    assert [t.get_text() for t in ax.get_xticklabels()][-1] == "rejected"


@pytest.mark.parametrize("measure", ["log_loss", "error"])
def test_the_ring_is_around_the_least_loss(measure, ax):
    wine = load_wine()
    grid = dd.rda_grid(wine.data, wine.target, pooling=[0, 0.5, 1], shrinkage=[0, 0.3])
    dd.plot_surface(grid, measure=measure, ax=ax)
    (s, p), loss = scatters(ax)[0].get_offsets()[0].astype(int), getattr(grid, measure)[:, :, 0]
    assert loss[p, s] == loss.min()
    assert ax.get_yticklabels()[p].get_text() in ax.get_title()
    np.testing.assert_allclose(ax.images[0].get_array(), loss)


@pytest.mark.parametrize("whole", [True, False])
def test_a_selection_path_shows_its_errors_and_the_chosen_threshold(whole, ax):
    model = dd.ShrunkenCentroids(threshold="cv", thresholds=12).fit(IRIS.data, KINDS)
    dd.plot_selection_path(model if whole else model.cv_, ax=ax)
    x, y = ax.lines[0].get_data()
    np.testing.assert_allclose(x, model.cv_.penalty)
    np.testing.assert_allclose(y, model.cv_.error)
    assert ax.lines[1].get_xdata()[0] == model.threshold_
    assert f"{model.n_selected_} feature" in ax.get_title()
    numbers = [t.get_text() for t in ax.child_axes[0].get_xticklabels()]
    assert numbers[0] == "4" and numbers[-1] == "0"


# --- masking, reject, perceptron -----------------------------------------------------------------


def three_in_a_row():
    x = np.concatenate([np.linspace(c - 1, c + 1, 40) for c in (-5, 0, 5)])
    return x[:, None], np.repeat(["left", "middle", "right"], 40)


def test_least_squares_lines_are_regressions_on_the_indicators_and_the_middle_is_masked(ax):
    X, y = three_in_a_row()
    X, y = X[np.r_[:60, 80:120]], y[np.r_[:60, 80:120]]  # fewer in the middle
    with pytest.warns(MaskedClassWarning):
        model = dd.LeastSquares().fit(X, y)
    dd.plot_masking(model, X, y, ax=ax)
    for line, label in zip(ax.lines[0:6:2], model.classes_, strict=True):
        x, fitted = line.get_data()
        expected = np.polyval(np.polyfit(X[:, 0], y == label, 1), x)
        np.testing.assert_allclose(fitted, expected, atol=1e-12)
    assert "'middle' is masked" in ax.get_title()
    assert legend(ax) == ["left", "middle (masked)", "right"]


def test_lda_masks_no_class_and_shows_posteriors(ax):
    X, y = three_in_a_row()
    model = dd.LDA().fit(X, y)
    dd.plot_masking(model, X, y, ax=ax)
    x = ax.lines[0].get_xdata()
    drawn = np.column_stack([line.get_ydata() for line in ax.lines[0:6:2]])
    np.testing.assert_allclose(drawn, model.predict_proba(x[:, None]))
    assert legend(ax) == ["left", "middle", "right"]


def test_the_line_of_many_features_goes_through_class_means_that_lie_on_one(ax):
    X, y = three_in_a_row()
    X = np.hstack([X, 3 * X + 1, -X])
    dd.plot_masking(dd.LDA(shrinkage=0.5).fit(X, y), X, y, ax=ax)
    crosses = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "+"]
    np.testing.assert_allclose(crosses, [-crosses[2], 0, crosses[2]], atol=1e-12)
    assert "variance of the means" not in ax.get_xlabel()


def test_a_reject_band_ends_where_the_largest_posterior_is_one_less_the_cost(ax):
    X = IRIS.data[:, [2]]
    model = dd.Decision(dd.LDA(), reject=0.3).fit(X, KINDS)
    dd.plot_reject(model, X, KINDS, ax=ax)
    ends = np.array([(p.get_x(), p.get_x() + p.get_width()) for p in ax.patches]).ravel()
    assert len(ends) == 4
    np.testing.assert_allclose(model.predict_proba(ends[:, None]).max(axis=1), 0.7, atol=1e-6)
    assert "least posterior to decide: 0.7" in legend(ax)


def test_the_curve_is_the_error_of_the_least_doubtful_rows(ax):
    held = dd.cross_validate(dd.LDA(), SEPALS, KINDS, 5)
    dd.plot_reject(held, reject=0.2, ax=ax)
    coverage, risk = ax.lines[0].get_data()
    doubt = 1 - np.exp(held.log_posterior).max(axis=1)
    wrong = held.labels[held.log_posterior.argmax(axis=1)] != KINDS
    order = np.argsort(doubt)
    expected = np.cumsum(wrong[order]) / np.arange(1, 151)
    np.testing.assert_allclose(risk, expected[(coverage * 150).round().astype(int) - 1])
    some = doubt <= 0.2
    marked = [line.get_xydata()[0] for line in ax.lines if line.get_marker() == "D"]
    np.testing.assert_allclose(marked, [(some.mean(), wrong[some].mean())])


def test_a_curve_worked_out_elsewhere_is_drawn_as_it_is(ax):
    held = dd.cross_validate(dd.LDA(), SEPALS, KINDS, 5)
    curve = risk_coverage(held.log_posterior, held.codes)
    dd.plot_reject(curve, ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), curve.risk)


def walked(X, sign, passes):
    """Weights of the textbook's perceptron after so many passes over the rows in order."""
    weights, rows = np.zeros(3), np.column_stack([X, np.ones(len(X))])
    for _ in range(passes):
        for row, side in zip(rows, sign, strict=True):
            if side * (row @ weights) <= 0:
                weights = weights + side * row
    return weights


def test_borders_of_the_perceptron_are_those_of_the_textbook_after_as_many_passes(ax):
    turns = np.arange(100).reshape(2, 50).T.ravel()  # one of each kind after the other
    X, y = SEPALS[turns], KINDS[turns]
    model = dd.Perceptron(standardize=False).fit(X, y)
    dd.plot_perceptron_path(model, X, y, borders=4, ax=ax)
    told = [int(text.split()[2]) for text in legend(ax) if text.startswith("after")]
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert len(lines) == len(told) + 1 >= 4 and told[0] == 1
    for passes, found in zip([*told, model.n_passes_], lines, strict=True):
        weights = walked(X, np.where(y == model.classes_[1], 1, -1), passes)
        at = np.concatenate(found.get_segments())
        score = at @ weights[:2] + weights[2]
        assert np.abs(score).max() < 1e-5 * np.abs(weights).max()


def test_without_rows_the_moves_of_each_pass_are_drawn(ax):
    with pytest.warns(NotSeparatedWarning):
        model = dd.Perceptron(max_passes=7).fit(SEPALS, KINDS)
    dd.plot_perceptron_path(model, ax=ax)
    assert ax.lines[0].get_ydata().tolist() == model.path_.tolist()


# --- at the door ---------------------------------------------------------------------------------


def test_without_axes_one_figure_is_made_and_its_axes_come_back():
    found = dd.plot_confusion(dd.assess(list("aab"), list("abb")))
    assert plt.get_fignums() == [found.figure.number]
    plt.close(found.figure)


LDA_2 = dd.LDA().fit(SEPALS[TWO], KINDS[TWO])
CALLS = {
    "one feature": (
        lambda: dd.plot_boundary(LDA_2, SEPALS[:, :1], KINDS),
        "needs two features, but the rows have 1",
    ),
    "unknown feature": (
        lambda: dd.plot_boundary(LDA_2, SEPALS[TWO], KINDS[TWO], features=(0, "width")),
        "no feature 'width'. There are 2: 'x0', 'x1'",
    ),
    "axis of text": (
        lambda: dd.plot_boundary(
            LDA_2, pd.DataFrame({"a": list("xy"), "b": [1, 2]}), KINDS[TWO][:2]
        ),
        "Column 'a' does not hold finite numbers",
    ),
    "no transform": (
        lambda: dd.plot_projection(dd.QDA().fit(SEPALS, KINDS), SEPALS, KINDS),
        "cannot show QDA: it has no transform. Fit Fisher or LDA",
    ),
    "two classes": (
        lambda: dd.plot_masking(LDA_2, SEPALS[TWO], KINDS[TWO]),
        "needs three classes or more, but there are 2",
    ),
    "no grid": (lambda: dd.plot_surface(LDA_2), "cannot show a LDA: pass a result of rda_grid"),
    "no selection path": (
        lambda: dd.plot_selection_path(LDA_2),
        "pass a model fitted with threshold='cv'",
    ),
    "no path of penalties": (
        lambda: dd.plot_penalty_path(LDA_2),
        "cannot show a LDA: pass a model fitted with ridge",
    ),
    "no counts": (lambda: dd.plot_confusion(LDA_2), "cannot show a LDA: pass a result of assess"),
    "no decision": (
        lambda: dd.plot_reject(LDA_2, SEPALS),
        r"cannot show LDA: it has no decide. Put it into Decision\(..., reject=...\)",
    ),
    "no path": (lambda: dd.plot_perceptron_path(LDA_2), "it has no path_. Fit .*Perceptron"),
    "no rows": (
        lambda: dd.plot_reject(dd.Decision.of_fitted(LDA_2, reject=0.1)),
        "pass X, and y to show their class",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_cannot_be_drawn_is_said_with_the_way_out(name):
    call, words = CALLS[name]
    with pytest.raises(PlotError, match=words):
        call()


def test_shuffled_passes_without_a_seed_cannot_be_repeated():
    X, y = SEPALS[:100], KINDS[:100]
    model = dd.Perceptron(shuffle=True).fit(X, y)
    with pytest.raises(OptionError, match="random_state=None is not valid: it must be an integer"):
        dd.plot_perceptron_path(model, X, y)


def test_axes_that_are_none_are_refused():
    with pytest.raises(OptionError, match="ax='str' is not valid"):
        dd.plot_confusion(dd.assess(list("aab"), list("abb")), ax="here")


def test_without_matplotlib_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(LibraryMissingError, match=r"pip install 'discriminant\[plot\]'"):
        dd.plot_confusion(dd.assess(list("aab"), list("abb")))


def test_matplotlib_is_not_imported_until_a_figure_is_drawn():
    code = (
        "import sys, discriminant as dd; "
        "[getattr(dd, n) for n in dd.__all__ if n.startswith('plot_')]; "
        "print('matplotlib' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def luminance(colour):
    """Relative luminance of WCAG 2."""
    parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    return np.dot([0.2126, 0.7152, 0.0722], parts)


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_every_mark_stands_out_from_the_paper_three_to_one(style):
    y = np.repeat(list("abcdefgh"), 5)
    turn = np.repeat(np.arange(8) * np.pi / 4, 5)
    X = np.column_stack([np.cos(turn), np.sin(turn)])
    X += np.random.default_rng(0).normal(0.0, 0.1, X.shape)
    with plt.style.context(style):
        ax = dd.plot_projection(dd.LDA().fit(X, y), X, y, ax=Figure().subplots())
    paper = luminance(ax.get_facecolor())
    marks = [luminance(c.get_facecolor()[0][:3]) for c in ax.collections]
    ratio = [(max(m, paper) + 0.05) / (min(m, paper) + 0.05) for m in marks]
    assert len(ratio) == 8 and min(ratio) >= 3.0


@pytest.mark.slow  # building the site runs every script too
@pytest.mark.filterwarnings("error::discriminant.errors.DiscriminantWarning")
@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_every_script_of_the_gallery_runs_and_draws(script, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    exec(compile(script.read_text(), str(script), "exec"), {"__name__": "gallery"})
    drawn = plt.get_fignums()
    plt.close("all")
    assert drawn


def test_a_long_legend_stays_within_axes_that_were_handed_in():
    rng = np.random.default_rng(0)
    codes = np.arange(90) % 6
    X = rng.normal(size=(90, 2)) + np.column_stack([3.0 * codes, codes])
    model = dd.Fisher().fit(X, [f"class {k}" for k in codes])
    figure = Figure(figsize=(11, 5))
    left, _ = figure.subplots(1, 2)
    dd.plot_projection(model, X, [f"class {k}" for k in codes], ax=left)
    FigureCanvasAgg(figure).draw()
    assert left.get_legend().get_window_extent().x1 <= left.get_window_extent().x1 + 1


def test_a_text_that_is_held_is_not_said_to_be_held_at_its_mean(ax):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["u", "v"]).assign(k=list("pqpp") * 10)
    y = np.where(frame["u"] + (frame["k"] == "q") > 0, "a", "b")
    model = dd.Encoded(dd.LDA()).fit(frame, y)
    dd.plot_boundary(model, frame, y, features=["u", "v"], ax=ax)
    assert "held at the mean or the most frequent value" in ax.get_title()


def test_penalty_path_marks_the_smallest_loss_and_the_one_standard_error_rule(ax):
    rows, labels = load_iris(return_X_y=True)
    model = dd.Logistic(ridge="cv", l1_ratio=1.0, ridges=8).fit(rows, labels)
    dd.plot_penalty_path(model, ax=ax)
    path = model.path_
    curve, *marks = ax.get_lines()
    np.testing.assert_array_equal(curve.get_xdata(), path.ridges)
    np.testing.assert_array_equal(curve.get_ydata(), path.loss)
    places = [mark.get_xdata()[0] for mark in marks]
    assert places == [path.ridges[path.minimum], path.ridges[path.one_standard_error]]
    assert ax.get_title().startswith(f"ridge {model.ridge_:.3g}: held-out log loss")
