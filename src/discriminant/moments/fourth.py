"""Third and fourth moments about a mean, and what they become about another point.

With z = u - mean_k, S = sum w z z', C_jl = sum w z_j^2 z_l, Q_jl = sum w z_j^2 z_l^2, moving the
mean away so that z becomes z + t (sum w z = 0 drops the odd terms):

    C'_jl = C_jl + t_l S_jj + 2 t_j S_jl + n t_j^2 t_l
    Q'_jl = Q_jl + 2 t_l C_jl + 2 t_j C_lj + t_l^2 S_jj + t_j^2 S_ll + 4 t_j t_l S_jl
            + n t_j^2 t_l^2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discriminant.table.schema import Floats


class HasPowers(Protocol):
    """Moments of K classes up to the fourth."""

    @property
    def weight(self) -> Floats: ...
    @property
    def scatter(self) -> Floats: ...
    @property
    def third(self) -> Floats | None: ...
    @property
    def fourth(self) -> Floats | None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Powers:
    """Moments of one class up to the fourth, as a stack of one."""

    weight: Floats  # (1,)
    scatter: Floats  # (1, d, d)
    third: Floats  # (1, d, d)
    fourth: Floats  # (1, d, d)

    @classmethod
    def of_class(cls, weight: Any, scatter: Floats, third: Floats, fourth: Floats) -> Powers:
        """The stack of one."""
        return cls(np.array([weight]), scatter[None], third[None], fourth[None])


def shift_third(moments: HasPowers, step: Floats) -> Floats:
    """C of each class after a step (K, d) away from its mean."""
    scatter, weight, third = moments.scatter, moments.weight[:, None, None], moments.third
    assert third is not None
    variance = np.einsum("kjj->kj", scatter)
    tj, tl = step[:, :, None], step[:, None, :]
    return np.asarray(third + tl * variance[:, :, None] + 2 * tj * scatter + weight * tj**2 * tl)


def shift_fourth(moments: HasPowers, step: Floats) -> Floats:
    """Q of each class after a step (K, d) away from its mean."""
    scatter, weight, third = moments.scatter, moments.weight[:, None, None], moments.third
    assert third is not None and moments.fourth is not None
    variance = np.einsum("kjj->kj", scatter)
    tj, tl = step[:, :, None], step[:, None, :]
    crossed = 2 * tl * third
    crossed = crossed + crossed.transpose(0, 2, 1)
    squares = tl**2 * variance[:, :, None]
    squares = squares + squares.transpose(0, 2, 1)
    return np.asarray(
        moments.fourth + crossed + squares + 4 * tj * tl * scatter + weight * tj**2 * tl**2
    )
