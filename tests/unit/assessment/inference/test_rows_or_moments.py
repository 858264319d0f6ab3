"""Tests of classes have one door: moments, or rows and their labels."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from discriminant import box_m, hotelling, manova, moments, stepwise
from discriminant.errors import MissingValueError, MomentsMismatchError, OptionError, ShapeError

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
TESTS = [manova, box_m, stepwise]


@pytest.mark.parametrize("test", TESTS)
def test_rows_and_labels_are_tested_as_their_moments_are(test):
    assert str(test(X, Y)) == str(test(moments(X, Y)))


def test_two_classes_of_rows_are_compared_as_those_of_moments():
    labels = ["setosa", "virginica"]
    assert str(hotelling(X, Y, labels=labels)) == str(hotelling(moments(X, Y), labels))


@pytest.mark.parametrize("test", [*TESTS, hotelling])
def test_rows_without_labels_are_refused_with_what_would_do(test):
    detail = "class" if test in (box_m, hotelling) else "pooled"
    with pytest.raises(
        MomentsMismatchError, match=rf"only an object of type ndarray. Pass X and y.*'{detail}'"
    ):
        test(X)


@pytest.mark.parametrize("detail", ["diagonal", "pooled", "rows"])
def test_what_box_m_asks_for_is_what_it_takes(detail):
    with pytest.raises(
        MomentsMismatchError, match=f"'class', but these have detail '{detail}'.*'class'"
    ):
        box_m(moments(X, Y, detail=detail))


@pytest.mark.parametrize("test", TESTS)
def test_labels_beside_moments_are_refused(test):
    with pytest.raises(OptionError, match=r"y='given'.*with moments"):
        test(moments(X, Y), Y)


@pytest.mark.parametrize("test", [*TESTS, hotelling])
def test_rows_are_checked_as_those_of_a_fit(test):
    with pytest.raises(ShapeError, match="y has 5 entries for 150 rows"):
        test(X, Y[:5])
    with pytest.raises(MissingValueError, match=r"Row 3 .*'x1'"):
        test(np.where(np.arange(600).reshape(150, 4) == 13, np.nan, X), Y)


def test_a_second_table_of_rows_is_not_taken_for_labels():
    with pytest.raises(MomentsMismatchError, match="'pooled', but these have detail 'rows'"):
        hotelling(moments(X, Y), X)
