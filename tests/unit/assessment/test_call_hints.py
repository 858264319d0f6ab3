"""Messages of calls with wrong arguments name the intended call."""

import warnings

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.errors import ExtraColumnsWarning, OptionError

X = np.array([[0.0], [1.0], [4.0], [5.0], [4.5], [0.5]])
Y = np.array(list("aabbba"))


@pytest.mark.parametrize("kind", [list, np.asarray, pd.Series])
def test_evaluate_of_labels_names_assess(kind):
    with pytest.raises(OptionError, match=r"use assess\(y_true, y_pred\)"):
        dd.evaluate(kind(Y), kind(Y))


def test_study_with_a_positional_target_names_the_option():
    with pytest.raises(OptionError, match=r"study\(source, target='status'\)"):
        dd.study("churn.csv", "status")


def test_sql_export_reads_a_table_named_rows_by_default():
    model = dd.LDA().fit(X, Y)
    assert dd.export(model, "sql") == dd.export(model, "sql", table="rows")


def test_evaluate_warns_once_of_extra_columns():
    frame = pd.DataFrame({"x": X[:, 0]})
    model = dd.Encoded(dd.LDA()).fit(frame, Y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dd.evaluate(model, frame.assign(z=1.0), Y)
    (warning,) = caught
    assert warning.category is ExtraColumnsWarning
    assert str(warning.message) == "Ignored column(s) 'z': the model was fitted without them."


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (dd.LDA(shrinkage="CV"), "'auto', 'oas' or 'cv'"),
        (dd.RDA(shrinkage="CV"), "'auto', 'oas' or 'cv'"),
        (dd.RDA(pooling="CV"), "'cv' or 'empirical_bayes'"),
        (dd.RDA(pooling="CV", shrinkage="cv"), "'cv' or 'empirical_bayes'"),
    ],
)
def test_invalid_shrinkage_and_pooling_list_cv(model, values):
    with pytest.raises(OptionError, match=values):
        model.fit(X, Y)


def test_invalid_shrinkage_of_qda_does_not_list_cv():
    with pytest.raises(OptionError, match=r"'auto' or 'oas' \(0 for none\)"):
        dd.QDA(shrinkage="CV").fit(X, Y)
