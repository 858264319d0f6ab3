"""OneVsRest, OneVsOne and OutputCodes: many classes by any two-class classifier."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from discriminant.errors import OptionError
from discriminant.estimators.decomposition import Decomposition, Odds
from discriminant.models.code_design import designed
from discriminant.models.codes import CODES, FIXED, RANDOM, Code, one_vs_one, one_vs_rest
from discriminant.models.decoding import DECODINGS, by_loss, euclidean, hamming
from discriminant.moments.class_rows import ClassRows
from discriminant.table.schema import Floats, Labels

Progress = Callable[[int, int], object]


class OneVsRest(Decomposition):
    """One classifier for each class, against all others; the most confident yes wins.

    Probabilities are coupled by the generalised Bradley-Terry model, so that they sum to one.

    Parameters
    ----------
    estimator
        A classifier of two classes, 0 and 1. One made from moments (LDA, QDA, RDA, LeastSquares,
        Fisher ...) is fitted from moments that are read once; any other is cloned and fitted anew.
    n_jobs
        How many are fitted at a time, where it is not made from moments; as in joblib.
    progress
        Called after each such fit with how many are done, and of how many.

    Attributes
    ----------
    classes_, code_, distance_, corrects_
        Labels; the code (K, M); its least distance; the errors of classifiers it always corrects.
    estimators_
        The fitted two-class classifiers; from moments they are made when they are asked for.
    moments_
        Where the classifier is made from moments, those of the fit; else None.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, labels = [[0.0], [1.0], [4.0], [5.0], [9.0], [10.0]], list("aabbcc")
    >>> model = OneVsRest(LDA()).fit(rows, labels)
    >>> model.predict([[0.2], [9.8]]).tolist()
    ['a', 'c']
    >>> model.ambiguous([[0.2], [4.5], [9.8]]).claims.tolist()  # no line cuts out the middle
    [1, 0, 1]
    """

    def __init__(
        self, estimator: Any, *, n_jobs: int | None = None, progress: Progress | None = None
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.progress = progress

    def _made(self, labels: Labels, read: Callable[[], Any]) -> Code:
        return Code(labels, one_vs_rest(len(labels)))

    def _leaves_out(self) -> bool:
        return False

    def _decoded(self, said: Floats, code: Code, odds: Odds | None) -> Floats:
        return said


class OneVsOne(Decomposition):
    """One classifier for each pair of classes; each votes, and ties go by confidence.

    Probabilities are coupled as Wu, Lin and Weng (2004) do. `decision_function` has the votes, less
    what is the same for all classes, with a part below 1/6 for confidence.

    Parameters
    ----------
    estimator, n_jobs, progress
        As in `OneVsRest`; there are K (K - 1) / 2 classifiers. The later class of a pair is 1.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, labels = [[0.0], [1.0], [4.0], [5.0], [9.0], [10.0]], list("aabbcc")
    >>> model = OneVsOne(LDA()).fit(rows, labels)
    >>> model.predict([[0.2], [4.5], [9.8]]).tolist(), model.code_.T.tolist()
    (['a', 'b', 'c'], [[-1, 1, 0], [-1, 0, 1], [0, -1, 1]])
    """

    def __init__(
        self, estimator: Any, *, n_jobs: int | None = None, progress: Progress | None = None
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.progress = progress

    def _made(self, labels: Labels, read: Callable[[], Any]) -> Code:
        return Code(labels, one_vs_one(len(labels)))

    def _leaves_out(self) -> bool:
        return True

    def _decoded(self, said: Floats, code: Code, odds: Odds | None) -> Floats:
        return hamming(said, code.signs)


class OutputCodes(Decomposition):
    """Error-correcting output codes: each classifier takes sides between groups of classes.

    A class is a word of sides; a row goes to the class whose word is nearest to what the
    classifiers say, so that a few of them may err. Probabilities are coupled by the generalised
    Bradley-Terry model, or where the code has zeros by least squares, as pairs are.

    Parameters
    ----------
    estimator, n_jobs, progress
        As in `OneVsRest`.
    code
        'one-vs-rest', 'one-vs-one', 'exhaustive' (every way to take sides), 'dense' or 'sparse'
        (random; sparse leaves classes out), 'designed' (sides that a linear rule can separate, from
        moments), or a matrix (K, M) of -1, 0 (left out) and 1, classes in sorted order.
    columns
        How many classifiers for 'dense', 'sparse' and 'designed'; None: 10 log2 K, for 'sparse'
        15 log2 K, or as many as there are.
    decoding
        'loss', 'hamming' or 'euclidean': see `models.decoding`. It is read when it is used, so that
        it can be changed after the fit.
    random_state
        Of the random codes.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows = [[0.0, 0.0], [1.0, 0.5], [0.0, 5.0], [1.0, 6.0], [5.0, 0.0], [6.0, 0.5]]
    >>> model = OutputCodes(LDA(), code="exhaustive").fit(rows, list("aabbcc"))
    >>> model.code_.shape, model.distance_, model.predict([[0.5, 0.5]]).tolist()
    ((3, 3), 2.0, ['a'])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        code: Any = "dense",
        columns: Any = None,
        decoding: Any = "loss",
        random_state: Any = 0,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.estimator = estimator
        self.code = code
        self.columns = columns
        self.decoding = decoding
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _made(self, labels: Labels, read: Callable[[], Any]) -> Code:
        self._check_options()
        K, many = len(labels), self.columns
        if not isinstance(self.code, str):
            return Code.of(self.code, labels)
        if self.code in FIXED:
            return Code(labels, FIXED[self.code](K))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(1 << 31))
        if self.code in RANDOM:
            return Code(labels, RANDOM[self.code](K, many, rng))
        found = read()
        found = found.reduce("diagonal") if isinstance(found, ClassRows) else found
        return Code(labels, designed(found, many, rng))

    def _check_options(self) -> None:
        if isinstance(self.code, str) and self.code not in CODES:
            allowed = f"one of {', '.join(CODES)}, or a matrix of -1, 0 and 1"
            raise OptionError.of("code", self.code, allowed)
        _checked_decoding(self.decoding)
        many = self.columns
        if many is None:
            return
        if not isinstance(many, Integral) or many < 1:
            raise OptionError.of("columns", many, "a whole number from 1 on, or None")
        if not isinstance(self.code, str) or self.code in FIXED:
            allowed = "None: this code has columns of its own"
            raise OptionError.of("columns", many, allowed)

    def _leaves_out(self) -> bool:
        if isinstance(self.code, str):
            return self.code in ("one-vs-one", "sparse")
        return not np.asarray(self.code).all()

    def _decoded(self, said: Floats, code: Code, odds: Odds | None) -> Floats:
        signs = code.signs
        decoding = _checked_decoding(self.decoding)
        if decoding == "hamming":
            return hamming(said, signs)
        if decoding == "loss":
            return by_loss(said, signs, logistic=odds is not None)
        word = np.clip(said, -1.0, 1.0) if odds is None else np.tanh(odds() / 2)
        return euclidean(word, signs)


def _checked_decoding(decoding: Any) -> Any:
    if decoding not in DECODINGS:
        raise OptionError.of("decoding", decoding, f"one of {', '.join(DECODINGS)}")
    return decoding
