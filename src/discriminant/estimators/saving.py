"""The one word that every estimator of ours has for its file."""

from __future__ import annotations

import os


class Saving:
    """An estimator that can be saved."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one file, whole or not at all; `discriminant.load(path)` gives it back."""
        from discriminant.store import save

        save(self, path)
