"""What is told where a likelihood is largest at the end of what can be, or nowhere."""

from __future__ import annotations

from discriminant.errors.base import DiscriminantWarning
from discriminant.errors.fitting import InferenceError


class BoundaryWarning(DiscriminantWarning):
    """The likelihood is largest at the end of what can be: at infinity, or on an edge of means."""

    @classmethod
    def of(cls, name: str, passes: int, stride: float) -> BoundaryWarning:
        return cls(
            f"{name} has no finite estimate: after {passes} passes the gradient vanishes, but the "
            f"coefficients still move by {stride:.1e} a step. Some fitted means go to the edge of "
            "what they can be (0, or 1), as where a column separates zeros from the rest. Standard "
            "errors mean nothing here. Drop that column, or pass ridge > 0."
        )

    @classmethod
    def of_edge(cls, name: str) -> BoundaryWarning:
        return cls(
            f"{name}: the likelihood is largest on the edge of what means can be, where some rows "
            "have a fitted mean of 0 (or, for shares, 1). The coefficients are the best that leave "
            "every row a mean, but there are no standard errors. Choose a link that has no such "
            "edge (logit, or log for counts) if that is not meant."
        )


class NoEstimateError(InferenceError):
    """Errors of an estimate that is not at a flat place of the likelihood."""

    @classmethod
    def of_edge(cls, name: str) -> NoEstimateError:
        return cls(
            f"{name} has no standard errors, intervals or tests: its likelihood is largest on the "
            "edge of what means can be, where it is not flat. Choose a link that has no such edge "
            "(logit, or log for counts), or resample the rows."
        )

    @classmethod
    def of_infinite(cls, name: str) -> NoEstimateError:
        return cls(
            f"{name} has no standard errors, intervals or tests: its likelihood rises on the way "
            "to infinity, so that there is no finite estimate. Drop the column that separates, "
            "pass ridge > 0, or for two classes fit Logistic(bias_reduction='jeffreys')."
        )


class NoPenaltyWarning(DiscriminantWarning):
    """An option of the penalty was given, and there is no penalty."""

    @classmethod
    def of(cls, name: str, value: float) -> NoPenaltyWarning:
        return cls(
            f"{name}={value:g} does nothing without a penalty, and ridge is 0: this is maximum "
            f"likelihood. Pass ridge > 0, which is how strong the penalty is, or leave out {name}."
        )
