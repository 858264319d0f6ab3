"""A data frame with a column for each class is read by the names of its columns."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris

from discriminant import LDA, assess, auc, compare_auc, estimated_prior, evaluate, roc
from discriminant.errors import ColumnNamesError, PriorError, ScoreError, ShapeError

ROWS, CODES = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
Y = NAMES[CODES]
MODEL = LDA().fit(ROWS[:, :2], Y)
P = MODEL.predict_proba(ROWS[:, :2])
FRAME = pd.DataFrame(P, columns=NAMES)
TURNED = FRAME[NAMES[::-1]]
MAKES = {
    "pandas": TURNED,
    "polars": pl.from_pandas(TURNED),
    "pyarrow": pa.Table.from_pandas(TURNED),
    "counted, pandas": pd.DataFrame(P),
    "counted, polars": pl.DataFrame(P),
}


@pytest.mark.parametrize("make", MAKES)
def test_columns_in_any_order_are_measured_as_the_sorted_ones(make):
    found = assess(Y, posterior=MAKES[make])
    assert found.log_loss == pytest.approx(-np.log(P[np.arange(150), CODES]).mean(), rel=1e-12)


@pytest.mark.parametrize("make", MAKES)
def test_columns_in_any_order_are_ranked_as_the_sorted_ones(make):
    assert auc(Y, MAKES[make]).parts == auc(Y, P).parts


def test_names_win_over_the_order_of_classes():
    assert assess(Y, posterior=TURNED, classes=NAMES).error == assess(Y, posterior=P).error


def test_columns_called_otherwise_are_what_classes_says():
    called = TURNED.add_prefix("p_")
    assert assess(Y, posterior=called, classes=NAMES[::-1]).error == assess(Y, posterior=P).error


def test_numbers_are_known_by_their_digits():
    digits = pl.DataFrame(P[:, ::-1], schema=["2", "1", "0"])
    assert assess(CODES, posterior=digits).error == assess(Y, posterior=P).error


def test_a_class_that_has_a_column_and_no_rows_is_a_class():
    assert assess(Y[:100], posterior=TURNED[:100]).labels.tolist() == NAMES.tolist()


def test_costs_in_an_array_are_in_the_order_of_the_classes_given():
    cost = [[0, 9, 1], [1, 0, 1], [1, 1, 0]]  # to say versicolor where it is virginica: 9
    order = [1, 2, 0]
    found = assess(Y, posterior=P[:, order], classes=NAMES[order], cost=cost)
    expected = assess(Y, posterior=P, cost={"versicolor": {"virginica": 9}})
    assert found.confusion().tolist() == expected.confusion().tolist()


@pytest.mark.parametrize(
    "asked",
    [
        lambda frame: assess(Y, posterior=frame),
        lambda frame: assess(Y, log_posterior=frame),
        lambda frame: auc(Y, frame),
        lambda frame: roc(Y, frame, positive="setosa"),
        lambda frame: compare_auc(Y, P, frame),
    ],
)
def test_columns_of_other_names_are_refused(asked):
    with pytest.raises(ColumnNamesError, match=r"named 'p_setosa', .*are 'setosa', .*classes="):
        asked(FRAME.add_prefix("p_"))


def test_a_curve_of_many_columns_asks_for_one_class():
    with pytest.raises(
        ScoreError, match=r"'setosa', .*column of scores.*positive=, the label of that class"
    ):
        roc(Y, P)


def test_no_rows_are_told():
    with pytest.raises(ScoreError, match="There are no rows"):
        auc([], [])


def test_labels_too_few_are_counted_against_the_rows():
    with pytest.raises(ShapeError, match="X has 150 rows and y has 5 labels"):
        evaluate(MODEL, ROWS[:, :2], Y[:5])


def test_a_curve_as_a_frame_has_its_area():
    points = roc(Y, P, positive="virginica").frame()
    expected = auc(Y == "virginica", P[:, 2]).value
    assert np.trapezoid(points.tpr, points.fpr) == pytest.approx(expected, rel=1e-12)


def test_an_auc_as_a_dictionary_has_plain_numbers():
    facts = auc(Y, P).to_dict()
    numbers = [*facts.values(), *(part["value"] for part in facts.pop("parts"))]
    assert {type(value) for value in numbers if not isinstance(value, list)} == {float}


def test_old_priors_may_be_told_by_label():
    old = {"virginica": 0.5, "setosa": 0.2, "versicolor": 0.3}
    listed = estimated_prior(np.log(P), [0.2, 0.3, 0.5]).prior
    by_name = estimated_prior(np.log(P), old, classes=NAMES).prior
    turned = estimated_prior(np.log(TURNED), old).prior
    np.testing.assert_allclose([by_name, turned[::-1]], [listed, listed], rtol=1e-12)


def test_old_priors_by_label_need_to_know_the_columns():
    with pytest.raises(PriorError, match=r"by label \('a', 'b'\).*Pass classes="):
        estimated_prior(np.log([[0.5, 0.5]]), {"a": 0.5, "b": 0.5})
