"""What is said where a library that is needed only for one thing is not installed."""

import sys

import pytest

import discriminant as dd
from discriminant.errors import LibraryMissingError


def test_without_onnx_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    model = dd.LDA().fit([[0.0], [1.0], [4.0], [5.0]], list("aabb"))
    with pytest.raises(LibraryMissingError, match=r"in a clone: pip install '\.\[onnx\]'"):
        dd.export(model, "onnx")


def test_without_pandas_a_frame_says_how_to_install_it(monkeypatch):
    tally = dd.assess(list("aab"), list("abb"))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(LibraryMissingError, match=r"A frame needs pandas.*pip install pandas"):
        tally.frame()
