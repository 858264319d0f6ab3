"""After the fold, rows in parts: the models, cross-validation, assessment and files of answers."""

import csv
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

import discriminant as dd
from discriminant.assessment.resampling.folds import PartitionedFolds
from discriminant.assessment.resampling.held_out_folds import HeldOutTally, fold_model, score_folds
from discriminant.engines.dispatch import rows as open_rows
from discriminant.engines.partitioned_table import PlanningSample
from discriminant.errors import (
    CategoryError,
    ClassMissingWarning,
    ColumnNamesError,
    CommandError,
    ExtraColumnsWarning,
    FileError,
    MaskedClassWarning,
    MissingCellError,
    NeedsMemoryError,
    OptionError,
    TargetError,
)
from discriminant.study.predict import predict_file
from discriminant.table.hash_folds import row_hash_folds
from discriminant.table.survey import LevelsWork

NAMES = list("pqrs")
FOLDS, SEED = 5, 3
ENDLESS = "ignore::discriminant.errors.DiscriminantWarning"


def table(rows=900, classes=3, seed=0):
    """Rows of some classes, with weights, places and a category."""
    rng = np.random.default_rng(seed)
    code = rng.choice(classes, rows, p=np.arange(classes, 0, -1) / (classes * (classes + 1) / 2))
    X = rng.normal(size=(rows, 4)) + code[:, None] * [1.0, 0.5, 0.0, -0.5]
    frame = pd.DataFrame(X, columns=NAMES)
    frame["w"] = rng.integers(1, 4, rows).astype(float)
    frame["site"] = rng.choice(["home", "north", "south"], rows)
    frame["colour"] = np.where(rng.random(rows) < 0.3, "red", "blue")
    return frame.assign(kind=np.array(list("abcdef"))[code])


def laid(frame, folder, groups=7, **options):
    """The table as a Parquet file in several row groups, opened."""
    path = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=-(-len(frame) // groups))
    wishes = {"target": "kind", "exclude": ["w", "site", "colour"], **options}
    return open_rows(str(path), **wishes)


def folds_of(frame, folds=FOLDS, seed=SEED):
    codes = np.unique(frame["kind"], return_inverse=True)[1]
    return row_hash_folds(frame[NAMES].to_numpy(), codes, folds, seed=seed)


@pytest.fixture(autouse=True)
def many_small_parts(monkeypatch):
    """Files are cut as if they were large."""
    from discriminant.table.files import splits

    monkeypatch.setattr(splits, "SMALL", 1)
    monkeypatch.setattr(splits, "BATCH", 100)
    monkeypatch.setattr(splits, "BATCH", 100)
    monkeypatch.setattr(splits, "RANGE", 6000)


MODELS = [
    dd.LDA(),
    dd.LDA(shrinkage="auto"),
    dd.LDA(shrinkage=1.0),
    dd.QDA(),
    dd.RDA(pooling=0.4, shrinkage=0.2),
    dd.NearestMean(),
    dd.Fisher(n_components=1),
    dd.SDA(n_features=3),
    dd.ShrunkenCentroids(threshold=0.5),
    dd.SparseLDA(penalty=0.2),
    dd.LeastSquares(),
    dd.LeastSquares(degree=2),
    dd.LeastSquares(precision="high"),
    dd.Logistic(),
    dd.Logistic(ridge=0.1),
    dd.Logistic(ridge=0.02, l1_ratio=0.5),
    dd.Logistic(bias_reduction="jeffreys"),
    dd.Logistic(class_weight="balanced"),
    dd.OneVsRest(dd.LDA()),
    dd.OneVsOne(dd.QDA()),
    dd.Reweighted(dd.LDA()),
    dd.Reweighted(dd.Logistic()),
    dd.Decision(dd.LDA(), cost={"a": {"b": 3.0}}, reject=0.3),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


# --- models --------------------------------------------------------------------------------------


@every_model
@pytest.mark.filterwarnings(ENDLESS)
def test_a_fit_to_parts_is_the_fit_to_all(model, tmp_path):
    frame = table()
    ours = clone(model).fit(laid(frame, tmp_path))
    theirs = clone(model).fit(frame[NAMES], frame["kind"])
    apart = np.abs(ours.predict_proba(frame[NAMES]) - theirs.predict_proba(frame[NAMES]))
    assert apart.max() < 1e-10


@pytest.mark.parametrize("link", ["probit", "cloglog", "cauchit"])
def test_links_of_two_classes_are_fitted_to_weighted_parts(link, tmp_path):
    frame = table(classes=2)
    ours = dd.Logistic(link).fit(laid(frame, tmp_path, weight="w", exclude=["site", "colour"]))
    theirs = dd.Logistic(link).fit(frame[NAMES], frame["kind"], sample_weight=frame["w"])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    np.testing.assert_allclose(ours.inference().std_error, theirs.inference().std_error, rtol=1e-6)


def test_a_class_that_is_masked_is_found_in_the_parts(tmp_path):
    rng = np.random.default_rng(1)
    centre = np.repeat([0.0, 4.0, 8.0], 300)  # three classes in a row: the middle one is masked
    frame = pd.DataFrame({"x": centre + rng.normal(size=900), "kind": np.repeat(list("abc"), 300)})
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=100)
    with pytest.warns(MaskedClassWarning):
        model = dd.LeastSquares().fit(open_rows(str(path), target="kind"))
    assert model.masked_.tolist() == ["b"]


@pytest.mark.parametrize("model", [dd.Perceptron(), dd.SVM(), dd.LaplaceNB()], ids=repr)
def test_a_model_that_needs_rows_says_so_and_takes_them_where_they_are_few(model, tmp_path):
    frame = table(300)
    rows = laid(frame, tmp_path)
    with pytest.warns() if isinstance(model, dd.Perceptron) else _quietly():
        few = clone(model).fit(rows)
    assert few.classes_.tolist() == ["a", "b", "c"]
    from dataclasses import replace

    many = replace(rows, row_sample=PlanningSample(rows.sample.take(np.arange(100))))
    with pytest.raises(NeedsMemoryError, match=r"partitioned table of 300 rows.*rows\.sample.*100"):
        clone(model).fit(many)


def _quietly():
    from contextlib import nullcontext

    return nullcontext()


def test_labels_beside_rows_in_parts_are_refused(tmp_path):
    frame = table(100)
    with pytest.raises(OptionError, match="has its own"):
        dd.LDA().fit(laid(frame, tmp_path), frame["kind"])


def test_encoded_takes_tables_such_as_the_one_read(tmp_path):
    frame = table()
    rows = laid(frame, tmp_path, exclude=["w", "site"])
    model = dd.Encoded(dd.LDA()).fit(rows)
    theirs = dd.Encoded(dd.LDA()).fit(frame[[*NAMES, "colour"]], frame["kind"])
    assert model.encoding_.features == (*NAMES, "colour=red")
    found = model.predict_proba(frame[[*NAMES, "colour"]])
    np.testing.assert_allclose(found, theirs.predict_proba(frame[[*NAMES, "colour"]]), atol=1e-12)


def test_dials_chosen_on_parts_are_those_chosen_in_memory(tmp_path):
    frame = table()
    fold = folds_of(frame, 10, seed=1)
    model = dd.RDA(pooling="cv", shrinkage="cv").fit(laid(frame, tmp_path))
    grid = dd.rda_grid(frame[NAMES], frame["kind"], fold)
    np.testing.assert_allclose(model.cv_.log_loss, grid.log_loss, rtol=1e-10)
    assert model.pooling_ == grid.pooling[grid.best()[0]]


# --- dealing -------------------------------------------------------------------------------------


def test_the_fold_of_a_row_does_not_depend_on_order_or_company():
    frame = table()
    whole, order = folds_of(frame), np.random.default_rng(2).permutation(len(frame))
    codes = np.unique(frame["kind"], return_inverse=True)[1]
    some = order[:100]
    found = row_hash_folds(frame[NAMES].to_numpy()[some], codes[some], FOLDS, seed=SEED)
    assert np.array_equal(found, whole[some])


@pytest.mark.parametrize("kind", ["normal", "whole numbers", "row numbers", "small steps"])
def test_folds_are_of_nearly_equal_size(kind):
    rng = np.random.default_rng(3)
    X = {
        "normal": rng.normal(size=(20_000, 3)),
        "whole numbers": rng.integers(0, 1000, (20_000, 3)).astype(float),
        "row numbers": np.arange(20_000.0)[:, None],
        "small steps": 1e8 + np.arange(20_000)[:, None] * 2.0**-20,
    }[kind]
    count = np.bincount(row_hash_folds(X, np.zeros(len(X), dtype=int), 10), minlength=10)
    spread = np.sqrt(len(X) * 0.1 * 0.9)  # binomial
    assert np.abs(count - 2000).max() < 4.5 * spread


def test_another_seed_deals_otherwise_and_minus_zero_is_zero():
    X, codes = np.random.default_rng(4).normal(size=(2000, 2)), np.zeros(2000, dtype=int)
    same = (row_hash_folds(X, codes, 10) == row_hash_folds(X, codes, 10, seed=1)).mean()
    assert 0.06 < same < 0.14
    plus, minus = (row_hash_folds(np.array([[zero]]), codes[:1], 1000)[0] for zero in (0.0, -0.0))
    assert plus == minus


def test_copies_of_a_row_are_dealt_round_in_every_block():
    X, codes = np.ones((1000, 2)), np.repeat([0, 1], [990, 10])
    count = [np.bincount(row_hash_folds(X, codes, 10)[codes == k], minlength=10) for k in (0, 1)]
    assert count[0].tolist() == [99] * 10 and count[1].tolist() == [1] * 10


def test_a_row_of_which_every_block_has_one_comes_into_all_folds():
    """It is alone in its class there, and not in its place."""
    rng = np.random.default_rng(5)
    blocks = [np.append(rng.integers(0, 2, 100), 1.0)[:, None] for _ in range(200)]
    codes = np.append(np.zeros(100, dtype=int), 1)
    found = [row_hash_folds(block, codes, 10)[-1] for block in blocks]
    assert np.bincount(found, minlength=10).min() >= 8  # of 20; 2.8 deviations


def coarse(kind, rows=20_000):
    """Rows of which there are many copies."""
    rng = np.random.default_rng(6)
    if kind == "binary":
        X = rng.integers(0, 2, (rows, 1))
        first = rng.random(rows) < np.where(X[:, 0] == 1, 0.9, 0.1)
    else:
        X = rng.integers(0, 3, (rows, 3))
        first = rng.random(rows) < 1 / (1 + np.exp(-(X @ [1.0, 0.5, -0.7] - 0.8)))
    frame = pd.DataFrame(X.astype(float), columns=[f"x{j}" for j in range(X.shape[1])])
    return frame.assign(kind=np.where(first, "a", "b"))


@pytest.mark.parametrize(
    "model",
    [dd.LDA(), dd.QDA(), pytest.param(dd.Logistic(), marks=pytest.mark.slow)],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["binary", "three of 0, 1, 2"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_few_distinct_rows_are_judged_as_in_memory(kind, model, tmp_path):
    frame = coarse(kind)
    rows = laid(frame, tmp_path, exclude=[])
    found = dd.cross_validate(model, rows)
    wanted = dd.cross_validate(model, frame.drop(columns="kind"), frame["kind"], seed=1)
    error = wanted.error
    assert abs(found.error - error) < 3 * np.sqrt(error * (1 - error) / len(frame))
    assert abs(found.log_loss - wanted.log_loss) < 0.01
    assert "10 folds" in repr(found)


def test_where_all_rows_are_at_hand_their_folds_are_those_of_the_parts(tmp_path):
    frame = coarse("three of 0, 1, 2", 1000)
    folded = PartitionedFolds.of(laid(frame, tmp_path, exclude=[]), FOLDS, detail="pooled")
    numbers = [np.flatnonzero(folded.sample_fold == f) for f in range(FOLDS)]
    in_memory = [folded.rows.sample.take(rows) for rows in numbers]
    for part, moments in zip(in_memory, folded.parts, strict=True):
        assert np.bincount(part.codes, minlength=2).tolist() == moments.rows.tolist()
        np.testing.assert_allclose(
            np.asarray(part.features[:]).sum(axis=0), moments.weight @ moments.means
        )


def test_folds_without_rows_are_not_counted(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "kind": list("ababab")})
    found = dd.cross_validate(dd.LDA(shrinkage=0.5), laid(frame, tmp_path, 1, exclude=[]), folds=6)
    some = sum(bool(tally.rows.any()) for tally in found.tallies)
    assert some < 6 and f"{some} folds" in repr(found)


# --- cross-validation ----------------------------------------------------------------------------


@every_model
@pytest.mark.filterwarnings(ENDLESS)
def test_cross_validation_in_two_passes_is_that_in_memory(model, tmp_path):
    frame = table()
    ours = dd.cross_validate(model, laid(frame, tmp_path), folds=FOLDS, seed=SEED)
    theirs = dd.cross_validate(model, frame[NAMES], frame["kind"], folds_of(frame))
    assert np.array_equal(ours.tally.weight, theirs.tally.weight)
    for mine, other in zip(ours.tallies, theirs.tallies, strict=True):
        np.testing.assert_allclose(mine.scored.log_loss, other.scored.log_loss, rtol=1e-10)
        np.testing.assert_allclose(mine.scored.brier, other.scored.brier, rtol=1e-10, atol=1e-12)


def test_weights_count_in_fit_and_measures(tmp_path):
    frame = table()
    rows = laid(frame, tmp_path, weight="w", exclude=["site", "colour"])
    ours = dd.cross_validate(dd.QDA(), rows, folds=FOLDS, seed=SEED)
    theirs = dd.cross_validate(
        dd.QDA(), frame[NAMES], frame["kind"], folds_of(frame), sample_weight=frame["w"]
    )
    assert ours.log_loss == pytest.approx(theirs.log_loss, rel=1e-12)
    assert ours.error == pytest.approx(theirs.error, rel=1e-12)


def test_the_area_under_the_curve_is_scikit_learns(tmp_path):
    frame = table(classes=2)
    ours = dd.cross_validate(dd.LDA(), laid(frame, tmp_path), folds=FOLDS, seed=SEED)
    held = dd.cross_validate(dd.LDA(), frame[NAMES], frame["kind"], folds_of(frame))
    p = np.exp(held.log_posterior[:, 1])
    assert ours.auc.value == pytest.approx(roc_auc_score(frame["kind"] == "b", p), abs=1e-12)
    assert ours.log_loss == pytest.approx(log_loss(frame["kind"], p), rel=1e-12)


def test_a_column_holds_out_one_place_at_a_time(tmp_path):
    frame = table()
    rows = laid(frame, tmp_path)
    theirs = dd.cross_validate(dd.LDA(), frame[NAMES], frame["kind"], groups=frame["site"])
    for ours in (
        dd.cross_validate(dd.LDA(), rows, folds="site"),
        dd.cross_validate(dd.LDA(), rows, groups="site"),
    ):
        assert ours.log_loss == pytest.approx(theirs.log_loss, rel=1e-12)
        sizes = [int(tally.rows.sum()) for tally in ours.tallies]
        assert sizes == frame["site"].value_counts().sort_index().tolist()


def test_a_logistic_fit_leaves_out_a_place_where_the_rows_are(tmp_path):
    frame = table()
    ours = dd.cross_validate(dd.Logistic(), laid(frame, tmp_path), folds="site")
    theirs = dd.cross_validate(dd.Logistic(), frame[NAMES], frame["kind"], groups=frame["site"])
    assert ours.log_loss == pytest.approx(theirs.log_loss, rel=1e-9)


def test_groups_are_dealt_whole(tmp_path):
    frame = table()
    found = dd.cross_validate(dd.LDA(), laid(frame, tmp_path), groups="site", folds=2)
    count = frame["site"].value_counts().tolist()
    whole = {*count, *(len(frame) - one for one in count)}  # one place, or two
    assert {int(tally.rows.sum()) for tally in found.tallies} <= whole


def test_a_class_in_one_fold_alone_is_named_and_cannot_be_predicted(tmp_path):
    frame = table(400)
    frame.loc[:9, "kind"] = "rare"
    some = np.random.default_rng(8).normal([50.0, 0.0, 0.0, 0.0], size=(200, 4))
    chosen = row_hash_folds(some, np.full(200, 3), FOLDS) == 0
    frame.loc[:9, NAMES] = some[chosen][:10]
    rows = laid(frame, tmp_path)
    with pytest.warns(ClassMissingWarning, match="'rare'"):
        found = dd.cross_validate(dd.LDA(), rows, folds=FOLDS)
    assert found.tally.recall[3] == 0.0 and np.isinf(found.log_loss)
    with pytest.warns(ClassMissingWarning):
        refitted = dd.cross_validate(dd.Logistic(ridge=1e-3), rows, folds=FOLDS)
    assert refitted.tally.recall[3] == 0.0


def test_several_models_share_both_passes_and_count_rows_both_predict_correctly(tmp_path):
    frame = table()
    models = {"lda": dd.LDA(), "qda": dd.QDA(), "mean": dd.NearestMean()}
    rows = laid(frame, tmp_path)
    folded = PartitionedFolds.of(rows, FOLDS, seed=SEED, detail="class")
    scores = list(score_folds(folded, {name: fold_model(one) for name, one in models.items()}))
    held = {
        name: dd.cross_validate(model, frame[NAMES], frame["kind"], folds_of(frame))
        for name, model in models.items()
    }
    right = {name: one.decided == one.codes for name, one in held.items()}
    for one in scores:
        tally = HeldOutTally.of(folded.labels, one.sums)
        assert tally.log_loss == pytest.approx(held[one.name].log_loss, rel=1e-12)
        assert one.both_correct.tolist() == [
            (right[one.name] & other).sum() for other in right.values()
        ]


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (dd.LDA(), {"folds": np.zeros(900, dtype=int)}, "no order"),
        (dd.LDA(), {"folds": 1}, "from 2"),
        (dd.LDA(), {"folds": "nowhere"}, "columns of"),
        (dd.LDA(), {"folds": "p"}, "groups="),
        (dd.LDA(), {"seed": -1}, "seed"),
        (dd.Encoded(dd.LDA()), {}, "already encoded"),
    ],
)
def test_what_cannot_be_dealt_is_said(model, options, message, tmp_path):
    frame = table(1200)
    with pytest.raises(OptionError, match=message):
        dd.cross_validate(model, laid(frame, tmp_path), **options)


def test_models_of_others_need_rows(tmp_path):
    from dataclasses import replace

    rows = laid(table(300), tmp_path)
    many = replace(rows, row_sample=PlanningSample(rows.sample.take(np.arange(100))))
    for model in (LogisticRegression(), dd.Decision(LogisticRegression()), dd.LaplaceNB()):
        with pytest.raises(NeedsMemoryError):
            dd.cross_validate(model, many)


# --- assessment ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_model_is_measured_on_parts_in_one_pass(wrapped, tmp_path):
    train, test = table(seed=0), table(seed=5)
    model = dd.Decision(dd.LDA(), reject=0.3)
    model = (dd.Encoded(model) if wrapped else model).fit(train[NAMES], train["kind"])
    found = dd.evaluate(model, laid(test, tmp_path))
    wanted = dd.evaluate(model, test[NAMES], test["kind"])
    assert found.actions == wanted.actions and np.array_equal(found.weight, wanted.weight)
    assert found.log_loss == pytest.approx(wanted.log_loss, rel=1e-12)
    area = roc_auc_score(test["kind"], model.predict_proba(test[NAMES]), multi_class="ovr")
    assert found.auc.value == pytest.approx(area, abs=1e-12)


def test_features_are_matched_by_name(tmp_path):
    frame = table()
    model = dd.LDA().fit(frame[NAMES[::-1]], frame["kind"])
    found = dd.evaluate(model, laid(frame, tmp_path))
    assert found.error == dd.evaluate(model, frame[NAMES[::-1]], frame["kind"]).error
    with pytest.raises(ColumnNamesError, match="elsewhere"):
        dd.evaluate(
            dd.LDA().fit(frame[["p"]].rename(columns={"p": "elsewhere"}), frame["kind"]),
            laid(frame, tmp_path),
        )


# --- file to file --------------------------------------------------------------------------------


def answered(frame, tmp_path, source, out, **options):
    model = dd.Encoded(dd.LDA()).fit(frame[[*NAMES, "colour"]], frame["kind"])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = predict_file(model, tmp_path / source, tmp_path / out, **options)
    assert [one.category for one in told] == [ExtraColumnsWarning]  # however many batches
    return model, found


@pytest.mark.parametrize("out", ["said.csv", "said.parquet", "said.arrow"])
@pytest.mark.parametrize("source", ["rows.csv", "rows.csv.gz", "rows.parquet", "rows.arrow"])
def test_answers_are_those_of_the_model_whatever_the_files(source, out, tmp_path):
    frame = table(500)[[*NAMES, "colour", "kind"]]
    write(frame, tmp_path / source)
    model, found = answered(frame, tmp_path, source, out)
    said = read(tmp_path / out)
    p = model.predict_proba(frame[[*NAMES, "colour"]])
    np.testing.assert_allclose(said[["p(a)", "p(b)", "p(c)"]].to_numpy(), p, rtol=1e-12)
    assert list(said.columns[:6]) == [*NAMES, "colour", "kind"]
    assert said["kind"].tolist() == frame["kind"].tolist()
    np.testing.assert_allclose(said[NAMES].to_numpy(), frame[NAMES].to_numpy(), rtol=1e-14)
    assert found.rows == 500 and found.counts == said["predicted"].value_counts().to_dict()


def write(frame, path):
    whole = pa.Table.from_pandas(frame, preserve_index=False)
    if path.suffix == ".parquet":
        pq.write_table(whole, path, row_group_size=90)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, whole.schema) as writer:
            writer.write_table(whole, max_chunksize=90)
    else:
        frame.to_csv(path, index=False)


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pandas()
    if path.suffix == ".arrow":
        with pa.OSFile(str(path)) as source:
            return pa.ipc.open_file(source).read_all().to_pandas()
    return pd.read_csv(path)


def test_texts_of_a_csv_pass_through_as_they_are_written(tmp_path):
    rows = ["id;p;q;note"]
    rows += [f'{i:03d};{i % 7},50;{i % 3},0;"a ""b"" {i}\nline; two"' for i in range(400)]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n", encoding="utf-16")
    frame = pd.DataFrame({"p": np.arange(60) % 7 + 0.5, "q": np.arange(60) % 3})
    model = dd.Encoded(dd.LDA()).fit(frame, np.where(frame["p"] > 3, "hi", "lo"))
    with pytest.warns(ExtraColumnsWarning, match="'id', 'note'"):
        predict_file(model, tmp_path / "rows.csv", tmp_path / "said.csv", probabilities=False)
    with open(tmp_path / "said.csv", newline="") as file:
        found = list(csv.reader(file, delimiter=";"))  # as the file with its decimal commas
    assert found[0] == ["id", "p", "q", "note", "predicted"]
    assert found[8][:4] == ["007", "0,50", "1,0", 'a "b" 7\nline; two']
    assert len(found) == 401


def test_a_fault_names_row_and_line_and_leaves_the_old_file(tmp_path):
    frame = table(500)[[*NAMES, "colour", "kind"]]
    spoilt = frame.copy()
    spoilt.loc[[333, 444], "q"] = np.nan
    spoilt.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "said.csv").write_text("old")
    with pytest.raises(MissingCellError, match=r"line 335.*'q'.*2 row"):
        answered(frame, tmp_path, "rows.csv", "said.csv")
    frame.assign(colour=np.where(np.arange(500) == 450, "mauve", frame["colour"])).to_csv(
        tmp_path / "rows.csv", index=False
    )
    with pytest.raises(CategoryError, match=r"line 452.*'mauve'"):
        answered(frame, tmp_path, "rows.csv", "said.csv")
    assert (tmp_path / "said.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "said.csv"]


def test_columns_that_are_there_are_not_written_twice(tmp_path):
    frame = table(100)[[*NAMES, "colour", "kind"]]
    frame.assign(predicted="x").to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(CommandError, match=r"'predicted'.*prefix"):
        answered(frame, tmp_path, "rows.csv", "said.csv")
    answered(frame, tmp_path, "rows.csv", "said.csv", prefix="model ")
    assert "model p(a)" in (tmp_path / "said.csv").read_text().splitlines()[0]


def test_a_model_fitted_to_parts_answers_a_file(tmp_path):
    frame = table(300)
    model = dd.LDA().fit(laid(frame, tmp_path))
    frame[NAMES].to_csv(tmp_path / "new.csv", index=False)
    predict_file(model, tmp_path / "new.csv", tmp_path / "said.csv")
    found = pd.read_csv(tmp_path / "said.csv")["predicted"]
    assert found.tolist() == model.predict(frame[NAMES]).tolist()


LARGE = """
import resource, sys
import numpy as np, pandas as pd
import discriminant as dd
from discriminant.study.predict import predict_file
frame = pd.DataFrame({"a": [0.0, 1.0, 5.0, 6.5], "b": [1.0, 0.0, 2.0, 1.0], "c": [0, 2.0, 1, 0]})
model = dd.LDA().fit(frame, list("uuvv"))
predict_file(model, sys.argv[1], sys.argv[3])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
predict_file(model, sys.argv[2], sys.argv[3])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_two_million_rows_take_no_more_room_than_some_thousand(tmp_path):
    rng = np.random.default_rng(0)
    for name, rows in (("small", 100_000), ("large", 2_000_000)):
        columns = {c: rng.normal(size=rows) for c in "abc"}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet", row_group_size=100_000)
    places = [str(tmp_path / f"{name}.parquet") for name in ("small", "large", "said")]
    done = subprocess.run(
        [sys.executable, "-c", LARGE, *places], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 100  # MB; the table itself takes 48, answers as objects far more
    assert pq.read_metadata(places[2]).num_rows == 2_000_000


@pytest.mark.parametrize("out", ["said.parquet", "said.arrow", "said.csv"])
def test_a_file_of_answers_that_fails_in_the_middle_leaves_nothing_behind(out, tmp_path):
    """Neither the file, nor a word on stderr afterwards."""
    frame = table(400)
    model = dd.Encoded(dd.LDA()).fit(frame[NAMES], frame["kind"])
    frame.loc[350, "q"] = np.nan
    frame[NAMES].to_csv(tmp_path / "rows.csv", index=False)
    program = f"""
import discriminant as dd
from discriminant.table.files import splits
from discriminant.errors import MissingCellError
splits.BATCH = 100
model = dd.load({str(tmp_path / "model.dd")!r})
try:
    dd.predict_file(model, {str(tmp_path / "rows.csv")!r}, {str(tmp_path / out)!r})
except MissingCellError as fault:
    print("missing")
"""
    dd.save(model, tmp_path / "model.dd")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stderr == "" and said.stdout.strip() == "missing"
    assert not (tmp_path / out).exists()


def test_answers_never_stand_beside_other_rows(tmp_path, monkeypatch):
    """If the text has more rows than were answered, or fewer, nothing is written."""
    from discriminant.study import prediction_writers

    frame = table(50)
    model = dd.Encoded(dd.LDA()).fit(frame[NAMES], frame["kind"])
    frame[NAMES].to_csv(tmp_path / "rows.csv", index=False)
    rows = list(csv.reader(frame[NAMES].to_csv(index=False).splitlines()))[1:]
    for other in (rows[:-1], [*rows, rows[0]]):
        monkeypatch.setattr(
            prediction_writers, "_csv_rows", lambda formats, other=other: (r for r in other)
        )
        with pytest.raises(FileError, match="a different number of rows"):
            predict_file(model, tmp_path / "rows.csv", tmp_path / "said.csv")
        assert not (tmp_path / "said.csv").exists()


def test_of_a_column_of_very_many_values_no_more_than_that_is_noticed(tmp_path):
    frame = table(3000).assign(id=lambda f: [f"row {i:05d}" for i in range(len(f))])
    rows = laid(frame, tmp_path, exclude=["w", "site", "colour", "id"])
    met = rows.source.map_reduce(LevelsWork("id", 1000)).check().total
    assert met.texts == set(frame["id"][:1001])
    with pytest.raises(OptionError, match="has more"):
        dd.cross_validate(dd.LDA(), rows, folds="id")


def test_a_target_of_too_many_classes_is_refused_before_all_rows_are_read(tmp_path, monkeypatch):
    frame = table(3000).assign(id=lambda f: [f"row {i:05d}" for i in range(len(f))])
    monkeypatch.setattr("discriminant.engines.dispatch.survey_columns", None)
    with pytest.raises(TargetError, match="max_classes"):
        laid(frame, tmp_path, target="id", exclude=[])
