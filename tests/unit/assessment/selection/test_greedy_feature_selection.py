"""Selection by held-out rows: each candidate of each step as by fitting it, in the same order."""

import json
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit

from discriminant import (
    LDA,
    QDA,
    RDA,
    Fisher,
    LeastSquares,
    NearestMean,
    cross_validate,
    leave_one_out,
    select_features,
)
from discriminant.assessment.selection.sweep import FoldSweep, LeaveOneOutSweep
from discriminant.errors import (
    ClassMissingWarning,
    ConstantColumnWarning,
    InferenceError,
    OptionError,
    TooFewRowsError,
)
from discriminant.table.memory import as_table

SWEPT = {
    "lda": LDA(),
    "lda ml with priors": LDA(prior=[0.2, 0.3, 0.5], denominator="ml"),
    "lda shrunk to its diagonal": LDA(shrinkage=0.3),
    "lda shrunk to the identity": LDA(shrinkage=0.3, target="identity"),
    "diagonal lda": LDA(shrinkage=1.0),
    "qda": QDA(),
    "qda shrunk": QDA(shrinkage=0.2, denominator="ml"),
    "rda": RDA(pooling=0.4, shrinkage=0.1),
    "rda friedman": RDA(pooling=0.4, weighting="friedman"),
    "qda with a shared covariance": QDA(groups=[[0, 1]]),
}
FITTED = {
    "lda shrunk by oas": LDA(shrinkage="oas"),
    "qda of uncorrelated features": QDA(covariance="diagonal"),
    "qda with a prior": QDA(map_prior={"strength": 20.0, "degrees": 50}),
    "qda with Student-t densities": QDA(predictive="student"),
    "rda with estimated pooling": RDA(pooling="empirical_bayes"),
    "lda shrunk to one variance": LDA(shrinkage=0.3, target="scaled_identity"),
    "nearest mean": NearestMean(),
    "fisher": Fisher(n_components=1),
    "least squares": LeastSquares(),
    "scikit-learn": LogisticRegression(),
}


def overlapping(seed, n=150, width=6, classes=3):
    """Correlated rows about different origins, classes that overlap, fold numbers and weights."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % classes)
    mix = np.eye(width) + 0.5 * rng.standard_normal((width, width))
    apart = 0.5 * rng.standard_normal((classes, width))
    spread = 1.0 + 0.3 * codes[:, None]
    rows = (rng.standard_normal((n, width)) * spread + apart[codes]) @ mix + 1e3 * np.arange(width)
    return rows, codes, rng.permutation(n) % 5, rng.uniform(0.5, 2.0, n)


def fitted(model, rows, codes, fold, weight, columns):
    """Error and log loss on held-out rows of the model fitted to some columns."""
    if not columns:
        return empty(model, codes, fold, weight)
    part = rows[:, sorted(columns)]
    if len(np.unique(fold)) == len(codes):
        held = leave_one_out(model, part, codes, sample_weight=weight)
    else:
        held = cross_validate(model, part, codes, fold, sample_weight=weight)
    return held.error, held.log_loss


def empty(model, codes, fold, weight):
    """The same without columns: by the priors given, or the shares of the other folds."""
    weight = np.ones(len(codes)) if weight is None else weight
    prior, wrong, loss = getattr(model, "prior", None), 0.0, 0.0
    for f in np.unique(fold):
        inside = fold == f
        shares = np.bincount(codes[~inside], weight[~inside]) if prior is None else np.array(prior)
        shares = shares / shares.sum()
        wrong += weight[inside] @ (codes[inside] != shares.argmax())
        loss -= weight[inside] @ np.log(shares[codes[inside]])
    return wrong / weight.sum(), loss / weight.sum()


def best_change(chosen, places, of, criterion):
    """The change of one feature that is best: least criterion, log loss, place."""

    def key(j):
        error, loss = of(chosen ^ {j})
        return (round(error, 12) if criterion == "error" else 0.0, loss, j)

    return min(places, key=key)


def brute_path(of, width, criterion, direction, most):
    """Features and losses of every model of a path, each candidate fitted anew."""
    of, place = cache(of), 0 if criterion == "error" else 1
    chosen = frozenset(range(width) if direction == "backward" else ())
    path = [(chosen, of(chosen))]
    record = {}
    while len(chosen) > 1 if direction == "backward" else len(chosen) < most:
        outside = chosen if direction == "backward" else set(range(width)) - chosen
        j = best_change(chosen, outside, of, criterion)
        chosen = chosen ^ {j}
        path.append((chosen, of(chosen)))
        now = path[-1][1][place]
        record[len(chosen)] = min(record.get(len(chosen), np.inf), now)
        while direction == "both" and len(chosen) > 2:
            out = best_change(chosen, chosen, of, criterion)
            value = of(chosen - {out})[place]
            if out == j or value >= record[len(chosen) - 1] - 1e-12:
                break
            chosen, j = chosen - {out}, out
            record[len(chosen)] = value
            path.append((chosen, of(chosen)))
    return path


def path_of(found):
    """The same of a selection."""
    places = {name: j for j, name in enumerate(found.features)}
    chosen = set(places.values()) if found.direction == "backward" else set()
    path = []
    for stage in found.stages:
        name = stage.entered or stage.removed
        chosen = chosen ^ ({places[name]} if name else set())
        path.append((frozenset(chosen), (stage.error, stage.log_loss)))
    return path


def assert_same_path(found, expected):
    ours = path_of(found)
    assert [features for features, _ in ours] == [features for features, _ in expected]
    losses = [np.array([losses for _, losses in path]) for path in (ours, expected)]
    np.testing.assert_allclose(*losses, rtol=0, atol=1e-10)


# --- exactly as by fitting ----------------------------------------------------------------------


@pytest.mark.parametrize(("criterion", "weighted"), [("error", False), ("log_loss", True)])
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize("name", SWEPT)
def test_every_step_is_that_of_fitting_every_candidate(name, direction, criterion, weighted):
    rows, codes, fold, weight = overlapping(len(name), n=100, width=5)
    weight, model = weight if weighted else None, SWEPT[name]
    expected = brute_path(
        lambda columns: fitted(model, rows, codes, fold, weight, columns),
        rows.shape[1],
        criterion,
        direction,
        rows.shape[1],
    )
    options = {"direction": direction, "criterion": criterion, "sample_weight": weight}
    assert_same_path(select_features(model, rows, codes, fold, **options), expected)


@pytest.mark.parametrize("name", FITTED)
def test_models_that_cannot_be_swept_are_fitted_and_chosen_alike(name):
    criterion = "error" if name == "least squares" else "log_loss"  # it gives no probabilities
    rows, codes, fold, weight = overlapping(1, width=4)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    expected = brute_path(
        lambda columns: fitted(FITTED[name], rows, codes, fold, weight, columns),
        4,
        criterion,
        "forward",
        3,
    )
    options = {"criterion": criterion, "n_features": 3, "sample_weight": weight}
    found = select_features(FITTED[name], rows, codes, fold, **options)
    ours = [features for features, _ in path_of(found)]
    assert ours == [features for features, _ in expected]
    place = ["error", "log_loss"].index(criterion)
    assert getattr(found.stages[-1], criterion) == pytest.approx(expected[-1][1][place], abs=1e-10)


@pytest.mark.parametrize(("criterion", "weighted"), [("error", True), ("log_loss", False)])
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_rows_left_out_one_by_one_choose_as_by_fitting(direction, criterion, weighted):
    rows, codes, _, weight = overlapping(3, n=60, width=5)
    weight = weight if weighted else None
    expected = brute_path(
        lambda columns: fitted(LDA(), rows, codes, np.arange(60), weight, columns),
        5,
        criterion,
        direction,
        5,
    )
    options = {"direction": direction, "criterion": criterion, "sample_weight": weight}
    assert_same_path(select_features(LDA(), rows, codes, "loo", **options), expected)


@pytest.mark.parametrize("kind", [FoldSweep, LeaveOneOutSweep])
def test_a_judge_knows_the_losses_of_all_changes_after_any_turns(kind):
    rows, codes, fold, _ = overlapping(5, n=80)
    fold = fold if kind is FoldSweep else np.arange(80)
    judge = kind(LDA(), as_table(rows, codes), fold, np.zeros(6, dtype=bool), tolerance=1e-8)
    for place in (4, 0, 2, 0, 5):  # the second turn of 0 takes it out again
        judge.toggle(place)
    ours = [
        judge.evaluate_changes(np.arange(6), criterion).mean for criterion in ("error", "log_loss")
    ]
    changes = [fitted(LDA(), rows, codes, fold, None, {2, 4, 5} ^ {j}) for j in range(6)]
    np.testing.assert_allclose(ours, np.transpose(changes), rtol=0, atol=1e-12)


def test_the_same_features_as_scikit_learn_takes_by_log_loss():
    rows, codes, fold, _ = overlapping(8, n=200, width=8)  # folds of one size: it averages folds
    peer = SequentialFeatureSelector(
        LinearDiscriminantAnalysis(),
        n_features_to_select=3,
        scoring="neg_log_loss",
        cv=PredefinedSplit(fold),
    ).fit(rows, codes)
    options = {"criterion": "log_loss", "n_features": 3}
    ours = select_features(LDA(denominator="ml"), rows, codes, fold, **options)
    assert ours.get_support(indices=True).tolist() == peer.get_support(indices=True).tolist()


# --- ties, constants, dependent columns ---------------------------------------------------------


def test_of_equal_errors_the_least_log_loss_decides_and_then_the_place():
    rows, codes, fold, _ = overlapping(2, classes=2, width=2)
    noise = np.random.default_rng(0).uniform(-1, 1, 150)
    clear, clearer = (np.where(codes == 1, 1.0, -1.0) + much * noise for much in (0.8, 0.7))
    wide = np.column_stack([rows, clearer, clear, clear])
    first = [
        select_features(LDA(), wide[:, order], codes, fold, n_features=1).get_support(indices=True)
        for order in ([0, 1, 3, 4], [0, 1, 2, 3], [3, 2, 0, 1])
    ]
    losses = [fitted(LDA(), wide, codes, fold, None, {j}) for j in (2, 3)]
    assert losses[0][0] == losses[1][0] == 0.0 and losses[0][1] < losses[1][1]
    assert [places.tolist() for places in first] == [[2], [2], [1]]


def test_a_column_made_from_others_cannot_enter_after_them_and_is_named():
    rows, codes, fold, _ = overlapping(4, width=3)
    frame = pd.DataFrame(np.column_stack([rows, rows[:, 0] + rows[:, 1]]), columns=list("abcs"))
    found = select_features(LDA(), frame, codes, fold)
    assert len(found.stages) == 4 and found.stages[-1].size == 3 and len(found.dependent) == 1
    with pytest.raises(
        OptionError,
        match=r"n_features=4 is more than can be selected: after 3 features.*n_features=3 or less",
    ):
        select_features(LDA(), frame, codes, fold, n_features=4)


def test_backward_from_dependent_columns_is_refused_by_name():
    rows, codes, fold, _ = overlapping(4, width=2)
    rows = np.column_stack([rows, rows[:, 0]])
    with pytest.raises(InferenceError, match=r"Backward selection: column\(s\) 'x0', 'x2'"):
        select_features(LDA(), rows, codes, fold, direction="backward")


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("folds", [5, "loo"])
def test_a_constant_column_is_told_and_never_in(direction, folds):
    rows, codes, *_ = overlapping(4, n=60, width=3)
    rows[:, 1] = 7.0
    with pytest.warns(ConstantColumnWarning, match="'x1'"):
        found = select_features(LDA(), rows, codes, folds, direction=direction)
    assert max(stage.size for stage in found.stages) == 2 and found.dependent == ("x1",)


@pytest.mark.parametrize("model", [LDA(), QDA()])
def test_a_column_that_varies_in_one_fold_only_is_judged_as_by_fitting(model):
    rows, codes, fold, _ = overlapping(6, width=3)
    rows[:, 2] = 0.0
    here = np.flatnonzero(fold == 2)
    rows[here, 2] = np.random.default_rng(0).standard_normal(len(here))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = brute_path(
            lambda columns: fitted(model, rows, codes, fold, None, columns),
            3,
            "log_loss",
            "forward",
            3,
        )
        found = select_features(model, rows, codes, fold, criterion="log_loss")
    assert_same_path(found, expected)


def test_a_column_that_one_row_alone_moves_is_judged_as_by_leaving_it_out():
    rows, codes, *_ = overlapping(7, n=40, width=3)
    rows[:, 1] = 0.0
    rows[11, 1] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = brute_path(
            lambda columns: fitted(LDA(), rows, codes, np.arange(40), None, columns),
            3,
            "log_loss",
            "forward",
            3,
        )
        found = select_features(LDA(), rows, codes, "loo", criterion="log_loss")
    assert_same_path(found, expected)


def test_a_column_that_tells_classes_apart_without_spread_is_taken_first():
    rows, codes, fold, _ = overlapping(9, width=3)
    rows[:, 2] = codes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = select_features(LDA(), rows, codes, fold)
    assert found.selected == ("x2",) and found.stages[1].error == 0.0


def test_units_and_origins_change_nothing():
    rows, codes, fold, _ = overlapping(10)
    moved = rows * np.array([1e-150, 1.0, 1e150, 1e6, 1e-6, 1.0]) + np.array(
        [0, 1e8, 0, 0, 0, -1e8]
    )
    plain, other = (
        select_features(LDA(), X, codes, fold, criterion="log_loss") for X in (rows, moved)
    )
    assert [stage.entered for stage in plain.stages] == [stage.entered for stage in other.stages]
    losses = [[stage.log_loss for stage in found.stages] for found in (plain, other)]
    np.testing.assert_allclose(*losses, rtol=1e-6)


def test_rows_of_a_class_that_a_training_part_lacks_do_not_count():
    rows, codes, fold, _ = overlapping(12, classes=4)
    fold[codes == 3] = 1
    kept = codes < 3
    with pytest.warns(ClassMissingWarning, match="'3'"):
        found = select_features(LDA(prior=[0.3, 0.3, 0.3, 0.1]), rows, codes, fold, n_features=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = cross_validate(
            LDA(prior=[0.3, 0.3, 0.3, 0.1]), rows[:, found.get_support()], codes, fold
        )
    own = held.log_posterior[np.arange(150), codes][kept]
    assert found.stages[-1].log_loss == pytest.approx(-own.mean(), abs=1e-12)


# --- which model, and how it is told ------------------------------------------------------------


def test_the_standard_error_is_that_of_the_folds():
    rows, codes, fold, _ = overlapping(13)
    fold[:20] = 0  # folds of different size
    found = select_features(LDA(), rows, codes, fold, criterion="log_loss", n_features=1)
    held = cross_validate(LDA(), rows[:, found.get_support()], codes, fold)
    own = -held.log_posterior[np.arange(150), codes]
    size = np.bincount(fold)
    each = np.bincount(fold, own) / size
    expected = np.sqrt(np.average((each - own.mean()) ** 2, weights=size) / 4)
    assert found.stages[-1].log_loss_se == pytest.approx(expected, rel=1e-10)


def test_the_standard_error_of_rows_left_out_alone_is_that_of_their_mean():
    rows, codes, *_ = overlapping(14, n=50)
    found = select_features(LDA(), rows, codes, "loo", n_features=1)
    error = found.stages[-1].error
    assert found.stages[-1].error_se == pytest.approx(np.sqrt(error * (1 - error) / 49), rel=1e-10)


def test_one_standard_error_is_room_for_a_smaller_model():
    rows, codes, fold, _ = overlapping(15, n=400, width=10)
    best, small = (
        select_features(LDA(), rows, codes, fold, criterion="log_loss", choice=choice)
        for choice in ("best", "one_se")
    )
    loss = np.array([stage.log_loss for stage in best.stages])
    within = loss <= loss.min() + best.stages[loss.argmin()].log_loss_se
    assert len(best.selected) == loss.argmin()
    assert len(small.selected) == within.argmax() < len(best.selected)


def test_sparse_rows_and_frames_and_arrays_choose_the_same():
    rows, codes, fold, _ = overlapping(16)
    rows = np.where(np.abs(rows % 3) < 1.0, 0.0, rows % 3)
    kinds = rows, sparse.csr_array(rows), pd.DataFrame(rows, columns=list("abcdef"))
    found = [select_features(LDA(), X, codes, fold).get_support().tolist() for X in kinds]
    assert found[0] == found[1] == found[2]


def test_a_selection_prints_its_path_and_goes_into_json():
    rows, codes, fold, _ = overlapping(17)
    found = select_features(QDA(), rows, codes, fold, n_features=2)
    lines = str(found).splitlines()
    assert lines[0] == "Forward selection for QDA by held-out error, 5 folds"
    assert [line.endswith("*") for line in lines[3:6]] == [False, False, True]
    assert lines[-1] == f"Selected: {', '.join(found.selected)}"
    again = json.loads(json.dumps(found.to_dict()))
    assert again["stages"][2]["error"] == found.frame().loc[2, "error"]


ROWS, CODES, *_ = overlapping(0, n=30)
BAD = {
    "a direction that is none": ({"direction": "sideways"}, OptionError, "forward, backward, both"),
    "a criterion that is none": ({"criterion": "auc"}, OptionError, "error, log_loss"),
    "a choice that is none": ({"choice": "two_se"}, OptionError, "best, one_se"),
    "more features than there are": ({"n_features": 7}, OptionError, "n_features=7.*from 1 to 6"),
    "no features": ({"n_features": 0}, OptionError, "n_features=0.*from 1 to 6"),
    "a tolerance of nothing": ({"tolerance": 0.0}, OptionError, "from 1e-12"),
    "folds in words": ({"folds": "many"}, OptionError, "'loo'"),
    "a class instead of a model": ({"estimator": LDA}, OptionError, r"LDA\(\)"),
    "one row of a class": (
        {"y": np.where(np.arange(30) == 3, 9, CODES), "folds": "loo"},
        TooFewRowsError,
        "'9' has 1 row",
    ),
}


@pytest.mark.parametrize("case", BAD, ids=list(BAD))
def test_bad_options_are_refused_with_what_can_be(case):
    options, kind, words = BAD[case]
    with pytest.raises(kind, match=words):
        select_features(**{"estimator": LDA(), "X": ROWS, "y": CODES} | options)
