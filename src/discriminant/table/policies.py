"""What may be done with missing cells and unseen levels: words that need nothing to be read."""

from __future__ import annotations

from typing import Literal, get_args

Missing = Literal["error", "drop", "mean", "indicator", "marginal"]
Unseen = Literal["error", "ignore", "reject"]

MISSING: tuple[str, ...] = get_args(Missing)
UNSEEN: tuple[str, ...] = get_args(Unseen)
