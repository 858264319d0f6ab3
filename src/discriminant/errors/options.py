"""Options that an estimator does not have."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from discriminant.errors.base import DiscriminantError


class UnknownOptionError(DiscriminantError, TypeError):
    """An estimator or a function was given an option that it does not have."""

    @classmethod
    def of(
        cls, estimator: str, option: str, *, known: Sequence[str], instead: str | None
    ) -> UnknownOptionError:
        """`instead` is what does here what the option does elsewhere."""
        near = get_close_matches(option, known, n=1)
        if instead is None and near:
            instead = f"did you mean {near[0]}?"
        elif instead is not None:
            instead = f"{instead} (see docs/from_sklearn.md)."
        has = f"Its options are {', '.join(known)}."
        return cls(
            f"{estimator} has no option '{option}'"
            + (f": {instead}" if instead else ".")
            + f" {has}"
        )
