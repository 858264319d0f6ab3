"""The one word that every estimator of ours has for its file."""

from __future__ import annotations

import os

from discriminant.estimators.translation import Named


class Saving(Named):
    """An estimator that can be saved, and that knows the names of its options."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one file, whole or not at all; `discriminant.load(path)` gives it back."""
        from discriminant.store import save

        save(self, path)
