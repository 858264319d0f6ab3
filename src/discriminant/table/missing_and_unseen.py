"""Policies for missing cells and for levels not seen during fitting.

This module imports no numerical library, since the help of the command line uses it.
"""

from __future__ import annotations

from typing import Literal, get_args

Missing = Literal["error", "drop", "mean", "indicator", "marginal", "em"]
Unlabelled = Literal["error", "drop"]
Unseen = Literal["error", "ignore", "reject"]

MISSING: tuple[str, ...] = get_args(Missing)
MISSING_IN_TABLES = tuple(policy for policy in MISSING if policy != "em")  # those without a model
UNLABELLED: tuple[str, ...] = get_args(Unlabelled)
UNSEEN: tuple[str, ...] = get_args(Unseen)
