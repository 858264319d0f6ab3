"""What a fitted label tree answers: the best labels of rows, and how probable they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.engines.local import available_threads
from discriminant.errors import LabelTreeError, NamesUncheckedWarning, ShapeError, tell
from discriminant.estimators.base import Rows
from discriminant.estimators.label_options import check_whole
from discriminant.estimators.label_rows import as_rows
from discriminant.estimators.label_sets import Kind
from discriminant.models.label_tree.layers import Forest
from discriminant.models.label_tree.search import top
from discriminant.table.schema import Floats, Labels, Schema
from discriminant.table.source import open_features

Codes = npt.NDArray[np.int32]

_CELLS = 1 << 28  # of a matrix of probabilities
_REACHED = 1000  # labels of a row, at most, that have a probability
_HALF = {"hinge": -1.0, "logistic": np.log(0.5)}  # what a margin of 0 adds to a score


class LabelAnswers(Rows):
    """Rows, and a forest that is asked about them."""

    forest_: Forest
    classes_: Labels
    kind_: Kind
    beam: int
    threads: int | None
    scale_: Floats | None = None
    unit_rows_: bool = False

    def predict_topk(self, X: Any, k: int = 5, beam: int | None = None) -> tuple[Codes, Floats]:
        """The k best labels of each row, best first: codes (n, k) and scores (n, k).

        Parameters
        ----------
        k
            Labels for each row. Where fewer were reached, codes are -1 and scores -inf. Of several
        trees, a score is of the max(k, beam, 20) best labels of each: a larger k can change the
        order of labels that are nearly equal.
        beam
            Nodes of each level to follow, in place of the fitted option; as many as there are
            labels leave nothing out.

        Returns
        -------
        codes
            Places in `classes_`.
        scores
            Logs of the mean, over trees, of exp(path score): with path 'logistic', of
            probabilities.
        """
        beam = self.beam if beam is None else beam
        check_whole("k", k, 1)
        check_whole("beam", beam, 1)
        return self._top(self._rows(X), int(k), int(beam))

    def predict(self, X: Any) -> Any:
        """The best label of each row; of label sets, all labels more likely than not.

        These are as y was: a sparse matrix of ones, or a list of lists of labels, best first.
        """
        if self._kind() == "one":
            codes, _ = self._top(self._rows(X), 1, self.beam)
            return np.asarray(self.classes_[codes[:, 0]])
        codes, scores = self._reached(self._rows(X))
        kept = scores >= _HALF[self.forest_.path]
        if self.kind_ == "indicator":
            found = self._sparse(codes, kept.astype(np.float64), kept)
            return found.astype(np.int8)
        return [self.classes_[row[some]].tolist() for row, some in zip(codes, kept, strict=True)]

    def predict_proba(self, X: Any, k: int | None = None) -> Any:
        """(n, L) probability of each label; with k, of the k best as a sparse matrix.

        Of one label for each row they sum to one over the labels that were reached; those of label
        sets do not. They are probabilities in so far as loss='logistic' makes them, with a cost
        that is chosen by the log loss of rows held out.
        """
        if k is None:
            codes, scores = self._log_probabilities(self._few(self._rows(X)))
            return self._dense(codes, np.exp(scores), 0.0)
        check_whole("k", k, 1)
        codes, scores = self._log_probabilities(self._rows(X))
        codes, scores = codes[:, :k], scores[:, :k]
        return self._sparse(codes, np.exp(scores), codes >= 0)

    def predict_log_proba(self, X: Any) -> Floats:
        """(n, L) log probability of each label, -inf of those that were not reached."""
        return self._dense(*self._log_probabilities(self._few(self._rows(X))), -np.inf)

    def decision_function(self, X: Any) -> Floats:
        """(n, L) scores, -inf of labels that were not reached; with two (n,), their difference."""
        found = self._dense(*self._reached(self._few(self._rows(X))), -np.inf)
        if len(self.classes_) == 2 and self.kind_ == "one":
            return np.asarray(found[:, 1] - found[:, 0])
        return found

    # --- inside -----------------------------------------------------------------------------------

    def _kind(self) -> Kind:
        self._need_fit()
        return self.kind_

    def _real(self) -> Any:
        """What rows are searched in: as weights are."""
        double = self.forest_.trees[0].layers[0].weight.dtype == np.float64
        return np.float64 if double else np.float32

    def _rows(self, X: Any) -> Any:
        """Rows to search for, as those of the fit."""
        self._need_fit()
        names = getattr(self, "feature_names_in_", None)
        if type(X) in (sparse.csr_matrix, sparse.csr_array) and names is None:
            features, given = X, None
        else:
            match = None if names is None else Schema(tuple(names.tolist()), np.zeros(0), True)
            features, given = open_features(X, match=match)
        if len(features.shape) != 2 or features.shape[1] != self.n_features_in_:
            raise ShapeError.of_width(features.shape[-1], self.n_features_in_, type(self).__name__)
        if features.shape[0] == 0:
            raise ShapeError.no_rows(0)
        if given is not None and names is None:
            tell(NamesUncheckedWarning.fitted_without(type(self).__name__))
        if given is None and names is not None:
            tell(NamesUncheckedWarning.given_without(type(self).__name__))
        known = None if names is None else tuple(names)
        scale, unit = self.scale_, self.unit_rows_
        return as_rows(features, self._real(), names=known, scale=scale, unit=unit)

    def _top(self, rows: Any, k: int, beam: int) -> tuple[Codes, Floats]:
        check_whole("beam", beam, 1)
        check_whole("threads", self.threads, 1, optional=True)
        threads = 1 if rows.shape[0] == 1 else self.threads or available_threads()
        return top(self.forest_, rows, k=k, beam=beam, threads=threads)

    def _reached(self, rows: Any) -> tuple[Codes, Floats]:
        """All labels that a row reaches."""
        return self._top(rows, min(len(self.classes_), _REACHED), self.beam)

    def _log_probabilities(self, rows: Any) -> tuple[Codes, Floats]:
        """The same, where one label is true of each row, so that they sum to one."""
        codes, scores = self._reached(rows)
        if self.kind_ == "one":
            scores = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return codes, scores

    def _few(self, rows: Any) -> Any:
        """Rows so few that there is room for a number for each label."""
        if rows.shape[0] * len(self.classes_) > _CELLS:
            raise LabelTreeError.too_many_cells(rows.shape[0], len(self.classes_), _CELLS)
        return rows

    def _dense(self, codes: Codes, values: Floats, beyond: float) -> Floats:
        found = np.full((len(codes), len(self.classes_)), beyond)
        row, place = np.nonzero(codes >= 0)
        found[row, codes[row, place]] = values[row, place]
        return found

    def _sparse(self, codes: Codes, values: Floats, kept: npt.NDArray[np.bool_]) -> Any:
        starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        shape = (len(codes), len(self.classes_))
        found = sparse.csr_array((values[kept], codes[kept], starts), shape=shape)
        found.sort_indices()
        return found
