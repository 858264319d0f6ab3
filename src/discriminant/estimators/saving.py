"""The one word that every estimator of ours has for its file."""

from __future__ import annotations

import os

from discriminant.estimators.option_copies import OptionCopies
from discriminant.estimators.translation import Named
from discriminant.estimators.underflow import IgnoresUnderflow


class Saving(Named, OptionCopies, IgnoresUnderflow):
    """An estimator that can be saved, and that knows the names of its options."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one file, whole or not at all; `discriminant.load(path)` gives it back."""
        from discriminant.store import save

        save(self, path)
