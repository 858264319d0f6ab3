"""A sketch of the curvature of a loss, from some rows: what L-BFGS starts every step from.

Rows z are white and centred, scores are s = z'theta C'. Along what is orthogonal to the columns of
theta, z tells nothing of s (exactly so if the features are Gaussian), so the curvature there is

    E[C' l''(s) C]  (x)  I        plus the penalty  I (x) Q

and only in the few directions B that scores depend on, the intercept among them, is it anything
else: there it is summed as it is, (r m, r m) with r <= m + 1. The sketch is the sum of both, so
its inverse takes two small ones however many features there are. It needs no truth, only
scores: a few thousand rows will do, and an error in it costs passes, never digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, svd

from discriminant.moments.slope import Local, Loss, Want
from discriminant.table.schema import Block, Codes, Floats

_FEW = 2048  # rows that tell which of some places is the better one
_MOST = 600  # numbers that the curvature is summed as it is for
_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 0.0)
_LEAST = 1e-8  # relative to the largest, so that a flat direction is not followed without end


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Some rows in white coordinates."""

    rows: Floats  # (n, q) the intercept's ones among them
    codes: Codes  # (n,) of their classes
    weight: Floats  # (n,) sums to one
    total: float  # what it summed to
    loss: Loss
    contrast: Floats | None  # (K, m)
    penalty: Floats | None  # (q, q)

    def sketch(self, theta: Floats) -> Sketch:
        """The curvature near theta (q, m)."""
        curve, cross = self._curves(theta)
        contrast = np.eye(len(curve)) if self.contrast is None else self.contrast
        mean = _contracted(curve.sum(axis=1), cross @ cross.T, contrast)
        along = _span(theta)
        inner = self._inner(self.rows @ along, curve, cross, contrast)
        if self.penalty is not None:
            m = theta.shape[1]
            inner += np.kron(np.eye(m), along.T @ self.penalty @ along)
        return Sketch.of(along, mean, inner, self.penalty)

    def best(self, low: Floats, high: Floats) -> Floats:
        """Of the places between two, the one where these rows cost least.

        Where there are few rows for their features, a discriminant is too sure of itself.
        """
        places = [low + share * (high - low) for share in _SHARES]
        return min(places, key=self._thinned(_FEW)._value)

    def _thinned(self, rows: int) -> Sample:
        """About so many of the rows."""
        every = slice(None, None, max(len(self.rows) // rows, 1))
        weight = self.weight[every]
        return replace(
            self,
            rows=self.rows[every],
            codes=self.codes[every],
            weight=weight / weight.sum(),
            total=self.total * float(weight.sum()),
        )

    def _value(self, theta: Floats) -> float:
        value = self._local(theta, want="gradient").loss
        if self.penalty is not None:
            value += 0.5 * float((theta * (self.penalty @ theta)).sum())
        return value if np.isfinite(value) else np.inf

    def floor(self, theta: Floats) -> Floats:
        """(q, q) F with I (x) F <= the curvature of the summed loss of these rows, so of all."""
        least = self._local(theta, want="floor").curve
        assert least is not None
        return np.asarray((self.rows * least.ravel()[:, None]).T @ self.rows * self.total)

    def bound(self) -> float:
        """No curvature of the mean loss plus penalty is more (Boehning 1992; white features)."""
        steepest = 0.0 if self.penalty is None else float(eigh(self.penalty)[0][-1])
        return steepest + (0.25 if self.contrast is None else 0.5)

    def _curves(self, theta: Floats) -> tuple[Floats, Floats]:
        """(K, n) diagonal and vector of l'' = diag - r r', times the weights."""
        local = self._local(theta, want="curvature")
        assert local.curve is not None
        cross = np.zeros_like(local.curve) if local.cross is None else local.cross
        return local.curve, cross

    def _local(self, theta: Floats, *, want: Want) -> Local:
        scores = theta.T @ self.rows.T
        if self.contrast is not None:
            scores = self.contrast @ scores
        block = Block(self.rows, self.codes, self.weight)
        return self.loss.at(np.ascontiguousarray(scores), block, want=want)

    def _inner(self, rows: Floats, curve: Floats, cross: Floats, contrast: Floats) -> Floats:
        """(m r, m r) curvature in the directions (n, r) that scores depend on."""
        m, r = contrast.shape[1], rows.shape[1]
        each = np.stack([(rows * weight[:, None]).T @ rows for weight in curve])
        found = np.einsum("km,kij,kn->minj", contrast, each, contrast, optimize=True)
        wide = ((contrast.T @ cross).T[:, :, None] * rows[:, None, :]).reshape(len(rows), m * r)
        return np.asarray(found.reshape(m * r, m * r) - wide.T @ wide)


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Mean curvature outside some directions, the curvature itself along them."""

    along: Floats  # (q, r) orthonormal
    inverse: Floats  # (m r, m r) of the curvature along them
    turn: Floats  # (m, m) eigenvectors of the mean curvature
    frame: Floats | None  # (q, q) eigenvectors of the penalty
    share: Floats  # (q or 1, m) its eigenvalues and those of the penalty, added

    @classmethod
    def of(cls, along: Floats, mean: Floats, inner: Floats, penalty: Floats | None) -> Sketch:
        """Factor both parts; what is nearly flat is taken as a little steeper."""
        values, turn = eigh(mean)
        values = np.maximum(values, _LEAST * max(float(values[-1]), 1e-300))
        sizes, axes = eigh(inner)
        sizes = np.maximum(sizes, _LEAST * max(float(sizes[-1]), 1e-300))
        steep, frame = (np.zeros(1), None) if penalty is None else eigh(penalty)
        share = np.maximum(steep, 0.0)[:, None] + values
        return cls(along, (axes / sizes) @ axes.T, turn, frame, share)

    def solve(self, gradient: Floats) -> Floats:
        """(q, m) the inverse of the sketch times a gradient."""
        m, r = gradient.shape[1], self.along.shape[1]
        part = self.along.T @ gradient
        rest = self._outside(gradient - self.along @ part)
        if self.frame is not None:
            rest -= self.along @ (self.along.T @ rest)
        inner = (self.inverse @ part.T.ravel()).reshape(m, r).T
        return np.asarray(rest + self.along @ inner)

    def _outside(self, gradient: Floats) -> Floats:
        if self.frame is None:
            return np.asarray((gradient @ self.turn / self.share) @ self.turn.T)
        found = (self.frame.T @ gradient @ self.turn) / self.share
        return np.asarray(self.frame @ found @ self.turn.T)


def _contracted(diagonal: Floats, outer: Floats, contrast: Floats) -> Floats:
    """C' (diag - outer) C."""
    return np.asarray((contrast.T * diagonal) @ contrast - contrast.T @ outer @ contrast)


def _span(theta: Floats) -> Floats:
    """(q, r) orthonormal: the intercept's direction, then those that theta goes furthest in."""
    first = np.zeros((len(theta), 1))
    first[0] = 1.0
    axes, size, _ = svd(theta, full_matrices=False)
    most = max(_MOST // theta.shape[1] - 1, 0)
    columns = axes[:, size > 1e-12 * max(size.max(initial=0.0), 1e-300)][:, :most]
    return np.asarray(np.linalg.qr(np.hstack([first, columns]))[0])
