"""Whether features of svmlight count from 0 or from 1: kept with a model, asked for, or told."""

import csv
import json
import warnings

import numpy as np
import pytest
from scipy import sparse

import discriminant as dd
from discriminant.cli.run import run
from discriminant.errors import (
    FirstFeatureWarning,
    MoreFeaturesWarning,
    OptionError,
    StateError,
)
from discriminant.table.files.svmlight import svmlight_blocks

D = 12  # features, each the word of a label; no row that is asked about has the first or the last


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Rows to learn from and others to be asked about, as XMC text and as svmlight from 0 and 1."""
    folder = tmp_path_factory.mktemp("first")
    words = sparse.csr_matrix(np.eye(D, dtype=np.float32))
    learnt = sparse.vstack([words] * 5).tocsr()
    for name, rows in (("train", learnt), ("test", words[1:-1]), ("last", words[1:])):
        dd.write_xmc(folder / f"{name}.txt", rows, rows)
        for first in (0, 1):
            dd.write_svmlight(folder / f"{name}{first}.svm", rows, rows, first=first)
    return folder


def fitted(place, name, *more):
    out = place / f"{name}{len(more)}.model"
    fit = ["fit", place / name, "--model", "label-tree", "--out", out, "--quiet", *more]
    assert run([str(word) for word in fit]) == 0
    return out


def best(path):
    with open(path, newline="", encoding="utf-8") as file:
        return [int(row["label_1"]) for row in csv.DictReader(file)]


def predicted(place, model, name, *more):
    said = ["predict", model, place / name, "--out", place / "said.csv", "--quiet", *more]
    assert run([str(word) for word in said]) == 0
    return best(place / "said.csv")


RIGHT = list(range(1, D - 1))


@pytest.mark.parametrize("first", [0, 1])
def test_rows_are_counted_as_those_that_the_model_was_fitted_to(place, first):
    model = fitted(place, f"train{first}.svm")
    assert predicted(place, model, f"test{first}.svm") == RIGHT


@pytest.mark.parametrize("first", [0, 1])
def test_rows_are_measured_as_they_were_counted(place, first, capsys):
    model = fitted(place, f"train{first}.svm")
    capsys.readouterr()
    assert run(["assess", str(model), str(place / f"test{first}.svm"), "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["P@1"] == 1


@pytest.mark.parametrize("first", [0, 1])
def test_where_the_model_cannot_know_it_can_be_said(place, first):
    model = fitted(place, "train.txt")
    assert predicted(place, model, f"test{first}.svm", "--first", first) == RIGHT


def test_it_can_be_said_of_the_rows_to_learn_from(place):
    held = dd.load(fitted(place, "test0.svm", "--first", "0"))
    assert (held.n_features_in_, held.first_feature_) == (D - 1, 0)


def test_a_file_that_decides_nothing_is_told_of(place):
    model = dd.load(fitted(place, "train.txt"))
    told = r"test1\.svm .* neither feature 0 nor feature 12.* from 1.*--first 0"
    with pytest.warns(FirstFeatureWarning, match=told):
        dd.predict_file(model, place / "test1.svm", place / "said.csv")
    assert best(place / "said.csv") == RIGHT


def test_a_file_with_the_last_feature_decides(place):
    model = dd.load(fitted(place, "train.txt"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", FirstFeatureWarning)
        dd.predict_file(model, place / "last1.svm", place / "said.csv")
    assert best(place / "said.csv") == [*RIGHT, D - 1]


@pytest.mark.parametrize(
    "read", [dd.read_svmlight, lambda *a, many, **b: [*svmlight_blocks(*a, **b)]]
)
def test_whoever_says_how_many_features_there_are_is_told_too(place, read):
    with pytest.warns(FirstFeatureWarning, match="neither feature 0 nor feature 12"):
        read(place / "test0.svm", features=D, many=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FirstFeatureWarning)
        read(place / "test0.svm", features=D, many=True, first=0)


def test_a_file_that_begins_with_another_number_than_the_model_is_refused(place, capsys):
    model = fitted(place, "train1.svm")
    said = ["predict", model, place / "train0.svm", "--out", place / "no.csv", "--quiet"]
    assert run([str(word) for word in said]) != 0
    assert "feature 0, but there are 12 features, 1 to 12" in capsys.readouterr().err


def test_of_xmc_text_there_is_nothing_to_say(place, capsys):
    model = fitted(place, "train.txt")
    said = ["predict", model, place / "test.txt", "--out", place / "no.csv", "--first", "1"]
    assert run([str(word) for word in said]) != 0
    assert "numbers features from 0" in capsys.readouterr().err


def test_no_other_number_is_taken(place):
    model = dd.load(fitted(place, "train.txt"))
    model.first_feature_ = -3
    with pytest.raises(OptionError, match="first_feature_"):
        dd.predict_file(model, place / "test0.svm", place / "no.csv")


@pytest.mark.parametrize("first", [2, -1, True, "0", None])
def test_a_model_that_begins_elsewhere_is_not_saved(place, first):
    model = dd.load(fitted(place, "train.txt"))
    model.first_feature_ = first
    with pytest.raises(StateError, match="first_feature_ must be 0 or 1"):
        dd.save(model, place / "odd.model")


def test_a_fit_to_a_file_without_feature_0_says_that_it_counted_from_1(place, capsys):
    (place / "late.svm").write_text("0 2:1\n1 3:1\n")
    told = ["fit", place / "late.svm", "--model", "label-tree", "--out", place / "late.model"]
    assert run([str(word) for word in told]) == 0
    assert "assumed to be numbered from 1" in capsys.readouterr().err
    assert run([str(word) for word in [*told, "--first", "1"]]) == 0
    assert "assumed to be numbered from 1" not in capsys.readouterr().err


def test_words_that_were_not_learnt_are_left_out(place):
    model = fitted(place, "train1.svm")
    (place / "more.svm").write_text(f"3 4:1 {D + 5}:1\n")
    with pytest.warns(MoreFeaturesWarning, match=f"up to {D + 5}"):
        dd.predict_file(dd.load(model), place / "more.svm", place / "said.csv")
    assert best(place / "said.csv") == [3]
