"""Text of an estimator for `print`: its options, and the numbers of its classes and features."""

from __future__ import annotations

from typing import Any

from discriminant.errors.base import format_count


def fitted_text(estimator: Any) -> str:
    """Return the constructor call; for a fitted estimator, add the numbers of classes and features.

    `repr` stays the constructor call, as scikit-learn expects.

    >>> from discriminant import LDA
    >>> fitted_text(LDA()), fitted_text(LDA().fit([[0.0], [1.0], [3.0], [4.0]], list("aabb")))
    ('LDA()', 'LDA()  # fitted: 2 classes, 1 feature')
    """
    if not estimator.__sklearn_is_fitted__():
        return repr(estimator)
    classes = getattr(estimator, "classes_", None)
    features = getattr(estimator, "n_features_in_", None)
    counts = [] if classes is None else [format_count(len(classes), "class")]
    counts += [] if features is None else [format_count(features, "feature")]
    return f"{estimator!r}  # fitted" + (f": {', '.join(counts)}" if counts else "")
