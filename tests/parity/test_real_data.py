"""Parity with R's MASS on real data, where they are at hand; the sets are a table of cases."""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import pytest

from discriminant import LDA, QDA


@dataclass(frozen=True)
class Case:
    """A set with the answers of MASS in its reference.json."""

    folder: str
    train: str
    label: str
    test: str | None = None
    split: str | None = None  # a query for the rows to train on; the others are the test rows
    answers: tuple[str, ...] = ("lda", "qda")


CASES = [
    Case("iris", "iris_fisher.csv", "Species"),
    Case("iris", "iris_uci.csv", "Species", answers=("lda_uci",)),
    Case("wine", "wine.csv", "class", answers=("lda", "lda_equal_prior", "qda")),
    Case("pima", "pima_tr.csv", "type", "pima_te.csv", answers=("lda", "lda_equal_prior", "qda")),
    Case("esl_vowel", "vowel_train.csv", "y", "vowel_test.csv"),
    Case("esl_waveform", "waveform_train.csv", "y", "waveform_test.csv"),
    Case("esl_mixture", "mixture.csv", "y"),
    Case("esl_saheart", "SAheart.csv", "chd", answers=("lda", "lda_prior_0.949_0.051", "qda")),
    Case("penguins", "penguins.csv", "species", answers=("lda", "lda_equal_prior", "qda")),
    Case(
        "islr_default",
        "Default.csv",
        "default",
        answers=("lda", "lda_equal_prior", "lda_balance_student", "qda"),
    ),
    Case(
        "islr_smarket",
        "Smarket.csv",
        "Direction",
        split="Year < 2005",
        answers=("lda", "lda_equal_prior", "qda"),
    ),
    Case("statlog_vehicle", "vehicle.csv", "Class", answers=("lda", "lda_equal_prior", "qda")),
    Case("statlog_letter", "letter.parquet", "lettr", split="index < 15000"),
    Case("imb_mammography", "mammography.csv", "y", answers=("lda", "lda_equal_prior")),
    Case("imb_abalone19", "abalone19.csv", "y", answers=("lda", "lda_equal_prior")),
    Case("imb_pageblocks0", "pageblocks0.csv", "y", answers=("lda", "lda_equal_prior")),
]
PAIRS = [(case, answer) for case in CASES for answer in case.answers]

every_answer = pytest.mark.parametrize(
    ("case", "answer"), PAIRS, ids=[f"{case.folder}-{answer}" for case, answer in PAIRS]
)


# --- reading a case -------------------------------------------------------------------------------


@cache
def reference_of(folder, case):
    return json.loads((folder / case.folder / "reference.json").read_text())


@cache
def tables_of(folder, case):
    """Rows to train on and rows to test on: the same where there are no others."""
    train = read_table(folder / case.folder / case.train)
    if case.test is not None:
        return train, read_table(folder / case.folder / case.test)
    if case.split is None:
        return train, train
    chosen = train.index.isin(train.query(case.split).index)
    return train[chosen], train[~chosen]


def read_table(path):
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def rows_of(table, label, variables):
    """The variables as R names them, and the labels; rows with a missing one are left out."""
    features = pd.DataFrame({name: numbers(table, name) for name in variables})
    complete = features.notna().all(axis=1)
    return features[complete], table[label][complete]


def numbers(table, name):
    """A column; a factor of two levels is 1 at the second, and R adds the level to its name."""
    values = table[
        next(c for c in table.columns if name == c or name.removeprefix(c) in set(table[c]))
    ]
    if pd.api.types.is_numeric_dtype(values):
        return values
    return (values == sorted(set(values))[-1]).astype(float)


@pytest.fixture
def fit(shared_data, case, answer):
    return fit_of(shared_data, case, answer)


@cache
def fit_of(folder, case, answer):
    """The model fitted, its rows and what MASS says."""
    reference = reference_of(folder, case)
    golden = reference[answer]
    variables = golden.get("variables") or reference["lda"]["variables"]
    train, test = [rows_of(t, case.label, variables) for t in tables_of(folder, case)]
    kind = QDA if answer.startswith("qda") else LDA
    prior = golden["prior"] if "prior" in answer else None
    return kind(prior=prior).fit(*train), train, test, golden


def assert_confusion(model, rows, golden):
    """The same counts, but for rows that MASS gives away at random.

    It chooses by R's max.col, which takes posteriors within 1e-5 of each other for equal and
    draws one of them; each such row may move one count.
    """
    features, truth = rows
    found = pd.crosstab(truth.to_numpy(), model.predict(features)).reindex(
        index=model.classes_, columns=model.classes_, fill_value=0
    )
    best = np.sort(model.predict_log_proba(features), axis=1)[:, -2:]
    drawn = int((best[:, 1] - best[:, 0] < 1e-5).sum())
    assert np.abs(found.to_numpy() - np.array(golden["counts"])).sum() <= 2 * drawn


# --- parity ---------------------------------------------------------------------------------------


@every_answer
def test_posteriors_of_the_first_rows_are_those_of_mass(fit):
    model, (features, _), _, golden = fit
    first = np.array(golden["posterior_first"])
    found = model.predict_proba(features[: len(first)])
    np.testing.assert_allclose(found, first, rtol=0, atol=1e-10)


@every_answer
def test_the_training_confusion_is_that_of_mass(fit):
    model, train, _, golden = fit
    assert_confusion(model, train, golden["train_confusion"])


@every_answer
def test_the_test_rows_are_judged_as_by_mass(fit):
    model, _, test, golden = fit
    if "test_confusion" in golden:
        assert_confusion(model, test, golden["test_confusion"])
    if "test_posterior_first" in golden:
        first = np.array(golden["test_posterior_first"])
        found = model.predict_proba(test[0][: len(first)])
        np.testing.assert_allclose(found, first, rtol=0, atol=1e-10)


@every_answer
def test_means_and_covariance_are_those_of_mass(fit):
    model, _, _, golden = fit
    if "means" in golden:
        np.testing.assert_allclose(model.means_, golden["means"], rtol=1e-12)
    if "pooled_cov" in golden:
        covariance = np.array(golden["pooled_cov"])
        moments = model.moments_
        found = moments.within() / (moments.weight.sum() - len(moments.labels))
        sd = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(found / sd / sd[:, None], covariance / sd / sd[:, None], 1e-11)


# --- figures in books -----------------------------------------------------------------------------

BOOKS = [  # folder, model, figure, train and test error as printed
    ("esl_vowel", LDA, "ESL table 4.1", 0.32, 0.56),
    ("esl_vowel", QDA, "ESL table 4.1", 0.01, 0.53),
    ("pima", LDA, "Ripley: 67 of 332", None, 0.202),
    ("pima", QDA, "Ripley: 76 of 332", None, 0.229),
    ("statlog_vehicle", LDA, "StatLog", 0.202, None),
    ("islr_smarket", LDA, "ISLR lab 4.6.3", None, 1 - 0.5595),
    ("islr_smarket", QDA, "ISLR lab 4.6.4", None, 1 - 0.5992),
    ("iris", QDA, "resubstitution", 0.02, None),
]


@pytest.mark.parametrize(
    ("folder", "kind", "figure", "at_train", "at_test"),
    BOOKS,
    ids=[f"{row[0]}-{row[1].__name__}" for row in BOOKS],
)
def test_errors_are_those_printed(shared_data, folder, kind, figure, at_train, at_test):
    case = next(case for case in CASES if case.folder == folder)
    variables = reference_of(shared_data, case)["lda"]["variables"]
    train, test = [rows_of(t, case.label, variables) for t in tables_of(shared_data, case)]
    model = kind().fit(*train)
    for printed, (features, truth) in ((at_train, train), (at_test, test)):
        if printed is not None:
            found = float((model.predict(features) != truth).mean())
            places = len(f"{printed:.4f}".rstrip("0")) - 2
            assert round(found, places) == pytest.approx(printed, abs=1e-9), figure


@pytest.mark.parametrize(
    ("threshold", "printed"),
    [(0.5, [[9644, 252], [23, 81]]), (0.2, [[9432, 138], [235, 195]])],  # ISLR tables 4.4 and 4.5
)
def test_default_is_called_at_a_threshold_as_in_islr(shared_data, threshold, printed):
    case = next(case for case in CASES if case.folder == "islr_default")
    (train, _) = tables_of(shared_data, case)
    features, truth = rows_of(train, "default", ["balance", "studentYes"])
    called = LDA().fit(features, truth).predict_proba(features)[:, 1] > threshold
    found = pd.crosstab(called, truth.to_numpy()).to_numpy()
    assert found.tolist() == printed


@pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
def test_a_singular_covariance_of_pixels_decides_as_in_scikit_learn(shared_data):
    folder = shared_data / "mnist"
    golden = json.loads((folder / "reference.json").read_text())["lda_sklearn_svd"]
    train, test = (read_table(folder / f"mnist_{part}.parquet") for part in ("train", "test"))
    pixels = [table.drop(columns="label").to_numpy() for table in (train, test)]
    model = LDA(denominator="ml").fit(pixels[0], train["label"])
    found = model.predict_proba(pixels[1][:5])
    np.testing.assert_allclose(found, golden["test_proba_first5"], rtol=0, atol=1e-10)
    error = float((model.predict(pixels[1]) != test["label"]).mean())
    assert error == pytest.approx(golden["test_error"], abs=1e-12)
