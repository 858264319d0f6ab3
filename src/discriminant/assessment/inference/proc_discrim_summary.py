"""Printed summary of Gaussian classifiers, in the layout of SAS's PROC DISCRIM.

With m_k the class means, S_k the covariances that the rule uses (all equal for linear rules) and
q_k the priors, the generalised squared distance from class i to class j is

    D2(j | i) = (m_i - m_j)' S_j^-1 (m_i - m_j) + g1(j) + g2(j)

    g1(j) = log |S_j|, or 0 if all classes share a covariance
    g2(j) = -2 log q_j, or 0 if all priors are equal

The linear discriminant function of class j has the coefficients S^-1 m_j and the constant
-m_j' S^-1 m_j / 2 - g2(j) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.assessment.printed_results import (
    PrintedResult,
    format_degrees,
    format_number,
    text_matrix,
    text_table,
)
from discriminant.models.rules import QuadraticRule
from discriminant.table.blocks import Floats, Labels
from discriminant.table.column_cells import import_pandas


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DiscriminantSummary(PrintedResult):
    """Result of `summary()` of LDA, QDA, RDA and NearestMean."""

    title: str
    features: tuple[str, ...]  # d names
    labels: Labels  # (K,) classes
    rows: Floats  # (K,) number of rows of each class
    weight: Floats  # (K,)
    prior: Floats  # (K,)
    rank: tuple[int, ...]  # rank of the common covariance, or ranks of the K covariances
    logdet: tuple[float, ...]  # log determinants, likewise
    distances: Floats  # (K, K) generalised squared distance from class i to class j
    constants: Floats | None  # (K,) of the linear discriminant functions; None for quadratic rules
    coefficients: Floats | None  # (d, K)
    resubstitution: Floats | None = None  # (K, K) weight of true class i classified as j
    left_out: Floats | None = None  # (K, K) as `counts`, each row classified by a fit without it

    @property
    def is_linear(self) -> bool:
        """Whether all classes share one covariance."""
        return self.constants is not None

    @property
    def text(self) -> str:
        """Text in the layout of PROC DISCRIM."""
        names = [str(label) for label in self.labels.tolist()]
        n, K, total = float(self.rows.sum()), len(names), float(self.weight.sum())
        sizes = [
            ["Total Sample Size", format_degrees(n), "DF Total", format_degrees(n - 1)],
            ["Variables", str(len(self.features)), "DF Within Classes", format_degrees(n - K)],
            ["Classes", str(K), "DF Between Classes", str(K - 1)],
        ]
        classes = [
            [
                name,
                format_degrees(float(self.rows[k])),
                format_number(float(self.weight[k]), 4),
                format_number(float(self.weight[k]) / total),
                format_number(float(self.prior[k])),
            ]
            for k, name in enumerate(names)
        ]
        head = ["", "Frequency", "Weight", "Proportion", "Prior"]
        which = ["Pooled"] if self.is_linear else names
        kind = "Pooled" if self.is_linear else "Within"
        determinants = [
            [name, str(rank), format_number(value, 5)]
            for name, rank, value in zip(which, self.rank, self.logdet, strict=True)
        ]
        lines = [
            self.title,
            "",
            *text_table("", ["", "", "", ""], sizes)[1:],
            "",
            *text_table("Class Level Information", head, classes),
            "",
            *text_table(
                f"{kind} Covariance Matrix Information",
                ["", "Rank", "Log of Determinant"],
                determinants,
            ),
            "",
            *text_matrix("Generalized Squared Distance", names, names, self.distances),
        ]
        if self.constants is not None and self.coefficients is not None:
            table = np.vstack([self.constants, self.coefficients])
            heading = "Linear Discriminant Function"
            lines += ["", *text_matrix(heading, ["Constant", *self.features], names, table)]
        for heading, counts in (
            ("Classification Summary: Resubstitution", self.resubstitution),
            ("Classification Summary: Cross-validation (leave-one-out)", self.left_out),
        ):
            if counts is not None:
                lines += ["", *_classification_lines(heading, names, counts)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as a dictionary of plain numbers, lists and texts."""
        labels = self.labels.tolist()
        return {
            "features": list(self.features),
            "classes": [
                {
                    "label": label,
                    "rows": float(self.rows[k]),
                    "weight": float(self.weight[k]),
                    "prior": float(self.prior[k]),
                }
                for k, label in enumerate(labels)
            ],
            "rank": list(self.rank),
            "logdet": list(self.logdet),
            "distances": self.distances.tolist(),
            "constants": _list(self.constants),
            "coefficients": _list(self.coefficients),
            "resubstitution": _list(self.resubstitution),
            "left_out": _list(self.left_out),
        }

    def frame(self) -> Any:
        """Return a pandas frame of the linear functions; for quadratic rules, of the distances."""
        pandas, labels = import_pandas(), self.labels.tolist()
        if self.constants is None or self.coefficients is None:
            return pandas.DataFrame(self.distances, index=labels, columns=labels)
        table = np.vstack([self.constants, self.coefficients])
        return pandas.DataFrame(table, index=["Constant", *self.features], columns=labels)


def _list(values: Floats | None) -> list[Any] | None:
    return None if values is None else values.tolist()


def _classification_lines(heading: str, names: list[str], counts: Floats) -> list[str]:
    """Return the lines of a classification table, with the error rate of each class."""
    totals = counts.sum(axis=1)
    with np.errstate(invalid="ignore"):
        errors = 1.0 - np.diagonal(counts) / totals
    rows = [
        [
            name,
            *(f"{count:g}" for count in counts[k]),
            f"{totals[k]:g}",
            f"{errors[k]:.4f}",
        ]
        for k, name in enumerate(names)
    ]
    overall = 1.0 - float(np.trace(counts)) / float(totals.sum())
    ends = [f"{count:g}" for count in counts.sum(axis=0)]
    rows.append(["Total", *ends, f"{totals.sum():g}", f"{overall:.4f}"])
    return text_table(heading, ["From", *names, "Total", "Error"], rows)


def summarise_gaussian(
    title: str,
    rule: QuadraticRule,
    *,
    features: tuple[str, ...],
    rows: Floats,
    weight: Floats,
    prior: Floats,
    linear: bool,
    resubstitution: Floats | None = None,
    left_out: Floats | None = None,
) -> DiscriminantSummary:
    """Return the summary of a Gaussian classifier, given its class densities as a rule."""
    unit, metrics = rule.anchor.unit, rule.metrics[:1] if linear else rule.metrics
    units = 2.0 * float(np.log(unit).sum())
    logdet = np.array([metric.logdet for metric in metrics]) + units
    equal = np.ptp(prior) <= 1e-12
    for_priors = np.zeros_like(prior) if equal else -2.0 * np.log(prior)
    for_classes = np.zeros_like(prior) if linear else logdet
    distances = np.array(
        [metric.squared_distances(rule.mean - mean)
         for mean, metric in zip(rule.mean, rule.metrics, strict=True)]
    ).T  # fmt: skip
    constants = coefficients = None
    if linear:
        means = rule.anchor.values(rule.mean)
        coefficients = (metrics[0].solve(means / unit) / unit).T
        constants = -0.5 * np.einsum("kd,dk->k", means, coefficients) - 0.5 * for_priors
    return DiscriminantSummary(
        title,
        features,
        rule.labels,
        np.asarray(rows, dtype=np.float64),
        weight,
        prior,
        tuple(len(unit) if metric.rest else metric.basis.shape[1] for metric in metrics),
        tuple(logdet.tolist()),
        distances + for_classes + for_priors,
        constants,
        coefficients,
        resubstitution,
        left_out,
    )
