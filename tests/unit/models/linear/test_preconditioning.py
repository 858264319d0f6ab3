"""Inverses in sketches of the curvature."""

import numpy as np
import pytest

from discriminant.models.linear import preconditioning
from discriminant.models.linear.preconditioning import _FLOOR, _inverse_with_floor


def symmetric_matrix(eigenvalues, seed=0):
    n = len(eigenvalues)
    vectors = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    matrix = (vectors * eigenvalues) @ vectors.T
    return (matrix + matrix.T) / 2, vectors


@pytest.mark.parametrize("least", [1.0, 1e-3, 1e-6, 1e-9, 1e-12, 0.0, -1e-9])
def test_inverse_raises_small_eigenvalues_to_the_minimum(least):
    eigenvalues = np.geomspace(1e-4, 3.0, 20)
    eigenvalues[0] = least
    matrix, vectors = symmetric_matrix(eigenvalues)
    raised = np.maximum(eigenvalues, _FLOOR * eigenvalues.max())
    wanted = (vectors / raised) @ vectors.T
    np.testing.assert_allclose(
        _inverse_with_floor(matrix), wanted, atol=1e-6 * np.abs(wanted).max()
    )


def test_well_conditioned_matrix_is_inverted_without_eigenvalues(monkeypatch):
    matrix, _ = symmetric_matrix(np.linspace(0.1, 1.0, 12))
    monkeypatch.setattr(preconditioning, "eigh", None)
    np.testing.assert_allclose(_inverse_with_floor(matrix) @ matrix, np.eye(12), atol=1e-12)
