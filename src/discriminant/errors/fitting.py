"""What is told of a fit: what was dropped, chosen, not reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from discriminant.errors.base import DiscriminantWarning, InputError, listing


class ShrinkageChosenWarning(DiscriminantWarning):
    """There are too few rows for a covariance to have an inverse, so it was shrunk."""

    @classmethod
    def of(cls, what: str, rank: int, features: int, amount: float) -> ShrinkageChosenWarning:
        return cls(
            f"{what} has rank {rank} for {features} features, so it has no inverse: too few rows, "
            "or columns that depend on others. "
            f"It was shrunk {amount:.3g} of the way to its diagonal (OAS). Pass shrinkage= to "
            "choose yourself, or keep fewer features."
        )


class ScarceRowsWarning(DiscriminantWarning):
    """A covariance has an inverse, but from so few rows that new rows are told apart badly.

    Of m degrees of freedom and d features the inverse is m / (m - d - 1) times the true one on
    average, if rows are Gaussian.
    """

    @classmethod
    def of(cls, what: str, *, rows: int, degrees: int, features: int) -> ScarceRowsWarning:
        left = degrees - features - 1
        factor = f"by a factor of {degrees / left:.2g}" if left > 0 else "without bound"
        return cls(
            f"{what} of {features} features comes from {rows} rows ({degrees} degrees of freedom), "
            f"fewer than two a feature: its inverse is too large {factor} on average, mostly by "
            "chance, so that new rows are told apart worse than need be. Pass shrinkage='auto', "
            f"use RDA(pooling='cv', shrinkage='cv'), or keep at most {degrees // 2} features."
        )


class MaskedClassWarning(DiscriminantWarning):
    """A class is never predicted on the rows the rule was fitted to."""

    @classmethod
    def of_classes(cls, labels: Sequence[object]) -> MaskedClassWarning:
        return cls(
            f"Class(es) {listing(labels)} are masked on the training rows: no row is predicted as "
            "one of them (whether they have a region elsewhere: masked_everywhere_). "
            "Use LDA, or a quadratic basis (degree=2)."
        )


class NotConvergedWarning(DiscriminantWarning):
    """An iteration stopped before it was done."""

    @classmethod
    def of(cls, what: str, steps: int, change: float, tolerance: float) -> NotConvergedWarning:
        return cls(
            f"{what} stopped after {steps} steps with a change of {change:.1e} "
            f"(goal {tolerance:.1e}). Raise the number of steps or scale the columns."
        )

    @classmethod
    def of_gap(cls, what: str, steps: int, gap: float, tolerance: float) -> NotConvergedWarning:
        return cls(
            f"{what} stopped after {steps} steps, up to {gap:.1e} of its objective above the least "
            f"(goal {tolerance:.1e}). Raise max_steps, or scale the columns (standardize=True)."
        )

    @classmethod
    def of_gradient(
        cls,
        what: str,
        passes: int,
        steepness: float,
        tolerance: float,
        way_out: str = "pass ridge > 0 if the columns nearly depend on one another",
    ) -> NotConvergedWarning:
        return cls(
            f"{what} stopped after {passes} passes with a scaled gradient of {steepness:.1e} "
            f"(goal {tolerance:.1e}), so its last digits are not to be trusted. Raise max_iter, "
            f"or {way_out}."
        )

    @classmethod
    def of_perceptron(
        cls, wrong: int, rows: int, passes: int, *, kept: str, separable: bool | None
    ) -> NotConvergedWarning:
        """`separable`: True where a border is proved to exist, None where that is not known."""
        reason = (
            "A linear programme shows that a border exists, so that more passes end with every row "
            f"right: pass max_passes={10 * passes}."
            if separable
            else f"It is not known whether a border exists: pass max_passes={10 * passes} to go on."
            " If the classes overlap, use LDA, Logistic or SVM, or add features (Basis)."
        )
        return cls(
            f"The perceptron did not converge: it stopped after {passes} passes, and {wrong} of "
            f"{rows} rows are wrong by the {kept}. {reason}"
        )

    @classmethod
    def of_average(cls, wrong: int, rows: int) -> NotConvergedWarning:
        return cls(
            f"The average of the perceptron's weights has not converged: {wrong} of {rows} rows are"
            " wrong by it, though the weights at the end have every row right. Pass "
            'keep="pocket" for these.'
        )

    @classmethod
    def of_priors(cls, steps: int, gap: float, tolerance: float) -> NotConvergedWarning:
        return cls(
            f"The estimate of the priors stopped after {steps} steps, up to {gap:.1e} a row below "
            f"the largest log likelihood (goal {tolerance:.1e}). Raise max_iter."
        )


class ClassMissingWarning(DiscriminantWarning):
    """A class has no row outside one fold, so its held-out rows cannot be right."""

    @classmethod
    def of_class(cls, label: object, fold: int, rows: int) -> ClassMissingWarning:
        return cls(
            f"All {rows} row(s) of class '{label}' are in fold {fold}, so the model for that fold "
            "does not know the class: its log posterior there is -inf. Use fewer folds, spread "
            "the class over folds, or leave it out."
        )


class NoPosteriorWarning(DiscriminantWarning):
    """A classifier has decisions but no posteriors."""

    @classmethod
    def of(cls, name: str) -> NoPosteriorWarning:
        return cls(
            f"{name} has neither predict_log_proba nor predict_proba: its log posterior is taken "
            "as 0 for the class it predicts and -inf for the others. Wrap it, for instance in "
            "sklearn.calibration.CalibratedClassifierCV, to get posteriors."
        )

    @classmethod
    def of_measures(cls, name: str) -> NoPosteriorWarning:
        return cls(
            f"There is neither predict_log_proba nor predict_proba in {name}: log loss, Brier "
            "score and calibration are left out, and so is a moved threshold; AUC and average "
            "precision are those of decision_function, if there is one. Wrap the classifier, for "
            "instance in sklearn.calibration.CalibratedClassifierCV, to get posteriors."
        )


class NotSeparatedWarning(DiscriminantWarning):
    """No linear border has every row on its own side, so that a perceptron cannot either."""

    @classmethod
    def of(cls, wrong: int, rows: int, passes: int, *, kept: str, proof: str) -> Self:
        return cls(
            f"The classes are not linearly separable: {wrong} of {rows} rows are wrong by the "
            f"{kept} after {passes} passes. {proof} that no linear border separates them with every"
            " row on its own side, so that more passes do not help. For classes that overlap use "
            "LDA, Logistic or SVM, or add features (Basis)."
        )


class SeparationWarning(DiscriminantWarning):
    """Linear scores separate classes, so that the likelihood has no finite maximum."""

    @classmethod
    def of(
        cls, kind: str, columns: Sequence[str], classes: Sequence[tuple[object, object]]
    ) -> SeparationWarning:
        pairs = [f"{one}' and '{other}" for one, other in classes]
        by = f"column(s) {listing(columns)}" if columns else "the intercept"
        how = (
            "completely separated: scores give every row to its class"
            if kind == "complete"
            else "quasi-separated: scores are wrong of no row and tie in some"
        )
        return cls(
            f"Class(es) {listing(pairs)} are {how}. So there is no finite maximum-likelihood "
            f"estimate: coefficients and standard errors of {by} grow without limit and mean "
            'nothing. Pass bias_reduction="jeffreys" (Firth) or ridge > 0, or drop or merge '
            "what separates, for instance a column made from the label or a rare category."
        )


class InferenceError(InputError):
    """Standard errors, intervals or tests that cannot be had."""

    @classmethod
    def of_ridge(cls, ridge: float) -> InferenceError:
        return cls(
            f"ridge={ridge:g} biases the estimates, so that standard errors, intervals and tests "
            "of maximum likelihood do not hold for them. Fit with ridge=0, or resample the rows."
        )

    @classmethod
    def of_logistic(cls, why: str) -> InferenceError:
        return cls(f"There are no standard errors, intervals or tests: {why}")

    @classmethod
    def needs_rows(cls, what: str) -> InferenceError:
        return cls(
            f"{what} fits again, and a fitted model keeps no rows: pass X and y (and sample_weight "
            "and offset, if there were any) as they were at fit."
        )

    @classmethod
    def no_odds(cls, title: str) -> InferenceError:
        return cls(
            f"The estimates of {title} are not logarithms of odds: only those of a logit are. "
            "Fit with link='logit'; for ratios of means by a log link call rate_ratios()."
        )

    @classmethod
    def no_rates(cls, title: str) -> InferenceError:
        return cls(
            f"The estimates of {title} are not logarithms of means: only those of a log link are. "
            "Fit with link='log'; for ratios of odds by a logit call odds_ratios()."
        )

    @classmethod
    def not_at_peak(cls, what: str, steepness: float) -> InferenceError:
        return cls(
            f"{what} starts from the largest likelihood, and this fit has not converged: the "
            f"scaled gradient is {steepness:.1e}. Raise max_iter and fit again."
        )

    @classmethod
    def other_values(cls, steepness: float) -> InferenceError:
        return cls(
            "These are not the rows of the fit: it has converged on its own rows, but on these the "
            f"scaled gradient is {steepness:.1e}. Pass X, y, sample_weight and offset as they were "
            "at fit."
        )

    @classmethod
    def other_rows(cls, found: float, fitted: float) -> InferenceError:
        return cls(
            f"These are not the rows of the fit: their deviance is {found:.9g}, and that of the "
            f"fit was {fitted:.9g}. Pass X, y, sample_weight and offset as they were at fit."
        )

    @classmethod
    def too_wide(cls, what: str, rows: float, classes: int, features: int) -> InferenceError:
        return cls(
            f"{what} of {features} features needs {features + classes} or more rows in {classes} "
            f"classes, and there are {rows:g}: the scatter within classes has no inverse. Add rows "
            f"or keep at most {max(int(rows) - classes, 0)} features: moments.select([...])."
        )

    @classmethod
    def collinear(
        cls, what: str, columns: Sequence[str], rank: int, features: int
    ) -> InferenceError:
        return cls(
            f"{what}: column(s) {listing(columns)} depend linearly on one another within classes "
            f"(rank {rank} of {features}), so that the scatter has no inverse. Leave out "
            f"{features - rank} of them: moments.select([...])."
        )

    @classmethod
    def no_spread(cls, what: str, columns: Sequence[str]) -> InferenceError:
        return cls(
            f"{what}: column(s) {listing(columns)} do not vary within any class but differ between "
            "classes: they separate them without error, F is infinite and there is nothing to "
            "test. If a column was made from the label drop it: moments.select([...])."
        )

    @classmethod
    def all_constant(cls, what: str, columns: Sequence[str]) -> InferenceError:
        return cls(
            f"{what}: none of the {len(columns)} column(s) {listing(columns)} varies: each has one "
            "value in all rows, and there is nothing to test. Read columns that vary."
        )

    @classmethod
    def light_classes(
        cls, what: str, labels: Sequence[object], rows: Sequence[float], features: int
    ) -> InferenceError:
        found = ", ".join(f"'{k}': {n:g}" for k, n in list(zip(labels, rows, strict=True))[:5])
        return cls(
            f"{what} of {features} features needs {features + 1} or more rows in every class; too "
            f"few are in {found}. Leave these classes out (moments.classes([...])), merge them "
            "(moments.group({...})) or keep fewer features (moments.select([...]))."
        )

    @classmethod
    def flat_class(cls, what: str, label: object, columns: Sequence[str]) -> InferenceError:
        return cls(
            f"{what}: column(s) {listing(columns)} have one value only in class '{label}', so that "
            "its covariance has no inverse. Leave out the columns (moments.select([...])) or the "
            "class (moments.classes([...]))."
        )

    @classmethod
    def not_two(cls, what: str, labels: Sequence[object]) -> InferenceError:
        return cls(
            f"{what} compares two classes, and there are {len(labels)} ({listing(labels)}): pass "
            "labels=(one, other), or the moments of two tables."
        )
