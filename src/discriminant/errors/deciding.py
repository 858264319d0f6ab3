"""Costs, thresholds and posteriors that no decision can be made from."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import DiscriminantWarning, InputError, listing


class CostError(InputError):
    """A cost matrix, or a cost of rejecting, cannot be used."""

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], labels: Sequence[object]) -> CostError:
        K = len(labels)
        return cls(
            f"cost has shape {shape} for {K} classes: pass ({K}, {K}), a row for each decision and "
            f"a column for each true class, both in the order {listing(labels, 20)}; or pass "
            "{decision: {class: cost}}, where names tell the order."
        )

    @classmethod
    def of_columns(cls, found: Sequence[object], labels: Sequence[object]) -> CostError:
        return cls(
            f"The columns of cost are {listing(found, 20)}, the classes are {listing(labels, 20)}: "
            "name each class once."
        )

    @classmethod
    def of_class(cls, action: object, label: object, labels: Sequence[object]) -> CostError:
        return cls(
            f"cost of '{action}' names the class '{label}'; the classes are {listing(labels, 20)}."
        )

    @classmethod
    def of_action(
        cls, action: object, missing: Sequence[object], labels: Sequence[object]
    ) -> CostError:
        return cls(
            f"'{action}' in cost is none of the classes {listing(labels, 20)}. An action of its "
            f"own needs a cost for every class, and none is given for {listing(missing, 20)}."
        )

    @classmethod
    def of_unnamed(cls, rows: int, columns: Sequence[object]) -> CostError:
        return cls(
            f"The {rows} rows of cost have no names. They would be the classes in the order of the "
            f"columns, {listing(columns, 20)}, and for that there must be {len(columns)} rows with "
            "0 where the two are the same. Name the decisions: by the index of a pandas frame, or "
            "by a column of texts in any frame."
        )

    @classmethod
    def of_twice(cls, action: object) -> CostError:
        return cls(f"cost has '{action}' more than once: name each action once.")

    @classmethod
    def of_cell(cls, action: object, label: object, value: object) -> CostError:
        shown = f"{value:g}" if isinstance(value, float) else repr(value)
        return cls(
            f"The cost of deciding '{action}' where '{label}' is true is {shown}: it must be a "
            "finite number of 0 or more. To rule a decision out, give it a very large cost."
        )

    @classmethod
    def of_row(cls, action: object, given: object, labels: Sequence[object]) -> CostError:
        return cls(
            f"cost of '{action}' is {given!r}: pass {{class: cost}}, what it costs where each of "
            f"the classes {listing(labels, 20)} is true."
        )

    @classmethod
    def without(cls, actions: Sequence[object], known: Sequence[object]) -> CostError:
        return cls(
            f"Rows were decided {listing(actions)}, whose cost is not given; costs are given for "
            f"{listing(known, 20)}. Name these actions in cost=; REJECT and OUTLIER cost what "
            "reject= and outlier= say."
        )

    @classmethod
    def of_diagonal(cls, label: object, value: float) -> CostError:
        return cls(
            f"The cost of deciding '{label}' where '{label}' is true is {value:g}: a right "
            "decision costs 0. Subtract it from all costs of that true class: no decision changes."
        )

    @classmethod
    def not_costs(cls, kind: str) -> CostError:
        return cls(
            f"cost is a {kind}: pass {{decision: {{class: cost}}}}, a square array in the order of "
            "the classes, or a data frame with decisions as rows and classes as columns."
        )

    @classmethod
    def of_reject(cls, value: object) -> CostError:
        return cls(
            f"The cost of rejecting is {value}: it must be a number from 0 (reject every row) to "
            "infinity (reject none)."
        )


class ThresholdError(InputError):
    """A threshold cannot be used."""

    @classmethod
    def of_value(cls, name: str, value: object) -> ThresholdError:
        return cls(f"{name} is {value}: it is held against a probability, so it must be in [0, 1].")

    @classmethod
    def of_class(cls, label: object, value: object) -> ThresholdError:
        return cls(
            f"The threshold of class '{label}' is {value}: with one for each class they must be in "
            "(0, 1]."
        )

    @classmethod
    def of_labels(cls, given: object, labels: Sequence[object]) -> ThresholdError:
        return cls(
            f"threshold={given!r} does not fit the {len(labels)} classes {listing(labels, 20)}: "
            "pass one number for each of them, or with two classes one number, for the second."
        )

    @classmethod
    def unsorted(cls, place: int, before: float, value: float) -> ThresholdError:
        return cls(
            f"thresholds must increase: entry {place} (counted from 0) is {value:g} after "
            f"{before:g}. Sort them and name each once."
        )

    @classmethod
    def and_cost(cls) -> ThresholdError:
        return cls(
            "threshold and cost are both given, and a threshold t is the cost matrix t : 1 - t. "
            "Pass one of them."
        )


class PosteriorError(InputError):
    """There are no posteriors to decide from."""

    @classmethod
    def absent(cls, name: str) -> PosteriorError:
        return cls(
            f"{name} has neither predict_proba nor predict_log_proba, and costs are weighed by "
            'probabilities. Pass calibrate="platt" or "isotonic", or wrap it in scikit-learn\'s '
            "CalibratedClassifierCV."
        )

    @classmethod
    def not_probabilities(cls, name: str, what: str) -> PosteriorError:
        return cls(
            f"The outputs of {name} are fitted values, not probabilities, and {what} needs "
            f"probabilities. Calibrate it, by Decision({_call(name)}, calibrate='platt') or "
            "scikit-learn's CalibratedClassifierCV, or use Logistic or LDA."
        )

    @classmethod
    def not_fused(cls, source: str, name: str, *, clipped: bool = False) -> PosteriorError:
        reason = (
            "whose outputs are fitted values, not probabilities"
            if clipped
            else "which has neither predict_proba nor predict_log_proba"
        )
        return cls(
            f"Source '{source}' is {name}, {reason}, and posteriors are what is fused. Wrap it in "
            f"scikit-learn's CalibratedClassifierCV, or in Decision({_call(name)}, "
            'calibrate="platt"), or use Logistic or LDA.'
        )

    @classmethod
    def of_sum(cls, row: int, total: float, name: str) -> PosteriorError:
        return cls(
            f"The posteriors that {name} gives for row {row} (counted from 0) sum to {total:.6g}, "
            "not 1: they are not probabilities of classes of which one is true. Calibrate it with "
            "scikit-learn's CalibratedClassifierCV."
        )

    @classmethod
    def no_number(cls, row: int, name: str) -> PosteriorError:
        return cls(f"The posterior that {name} gives for row {row} (counted from 0) is no number.")

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], classes: int | None) -> PosteriorError:
        many = "(rows, classes)" if classes is None else f"{classes} classes"
        return cls(
            f"Posteriors have shape {shape} for {many}: pass a row or more, and a column for each "
            "class."
        )

    @classmethod
    def of_columns(cls, columns: int, labels: Sequence[object]) -> PosteriorError:
        return cls(
            f"Posteriors have {columns} column(s) and there are {len(labels)} classes, "
            f"{listing(labels, 20)}: pass classes=, the class of each column in order."
        )

    @classmethod
    def not_normalised(cls, row: int, total: float, name: str) -> PosteriorError:
        return cls(
            f"{name} of row {row} (counted from 0) makes probabilities that sum to {total:.6g}, "
            "not 1. Pass probabilities as posterior=, their logarithms as log_posterior=; scores "
            "that are neither have to be calibrated first."
        )

    @classmethod
    def not_logs(cls, row: int, total: float) -> PosteriorError:
        return cls(
            f"log_posterior of row {row} (counted from 0) makes probabilities that sum to "
            f"{total:.6g}, not 1: pass the logarithms of posteriors, as predict_log_proba gives "
            "them, and none that is NaN."
        )

    @classmethod
    def not_a_table(cls) -> PosteriorError:
        return cls("log_posterior is no table of numbers: pass (n, K) logarithms of posteriors.")

    @classmethod
    def none_kept(cls, measure: str) -> PosteriorError:
        return cls(
            f"{measure} follows from posteriors, and none were given: pass log_posterior= or "
            "posterior= beside the decisions."
        )

    @classmethod
    def contradicted(cls, row: int, names: Sequence[object]) -> PosteriorError:
        return cls(
            f"In row {row} (counted from 0) every class has posterior 0 by one of "
            f"{listing(names)}, so that nothing is left. Smooth or calibrate the models that say 0."
        )

    @classmethod
    def unknown_prior(cls, name: str) -> PosteriorError:
        return cls(
            f"The priors that the posteriors of {name} have are not known, so they cannot be "
            "replaced: pass fitted_prior=, the class shares of the rows it was fitted to."
        )

    @classmethod
    def without_moments(cls, name: str) -> PosteriorError:
        return cls(
            f"{name} was fitted without outlier=, so the class means and their covariance were not "
            "read. Fit once with outlier= at any level; the level can be changed afterwards."
        )

    @classmethod
    def of_fitted_without(cls, name: str) -> PosteriorError:
        return cls(
            f"{name} keeps no class means and covariance, and came fitted, so that no rows were "
            "read to find them. Pass rows, which change nothing of the classifier: "
            "Decision(FrozenEstimator(model), outlier=...).fit(X, y), with scikit-learn's "
            "FrozenEstimator."
        )


def _call(name: str) -> str:
    """How a classifier is made; a name may have its options already."""
    return name if name.endswith(")") else f"{name}()"


class FusionError(InputError):
    """Sources cannot be fused."""

    @classmethod
    def of_members(cls, found: object) -> FusionError:
        return cls(
            f"estimators={found!r} is not possible: pass a list of (name, classifier, columns), "
            "each name once."
        )

    @classmethod
    def of_columns(cls, name: str, columns: object, width: int) -> FusionError:
        return cls(
            f"X has {width} feature(s), and columns={columns!r} of '{name}' are not among them, or "
            "are none. Pass names or positions of one or more columns."
        )

    @classmethod
    def of_classes(cls, name: str, found: Sequence[object], first: Sequence[object]) -> FusionError:
        return cls(
            f"'{name}' knows the classes {listing(found, 20)} and the first source "
            f"{listing(first, 20)}: fit all to the same classes."
        )


class NeverRejectsWarning(DiscriminantWarning):
    """The reject option can never be taken."""

    @classmethod
    def of_cost(cls, cost: float, most: float) -> NeverRejectsWarning:
        return cls(
            f"The cost of rejecting, {cost:g}, never pays: for any posterior there is a decision "
            f"that costs {most:g} or less on average, so no row is ever rejected. Pass a cost "
            "below that."
        )


class NoClassDecidedWarning(DiscriminantWarning):
    """No action of a cost is a class."""

    @classmethod
    def of_actions(
        cls, actions: Sequence[object], labels: Sequence[object]
    ) -> NoClassDecidedWarning:
        return cls(
            f"cost names the action(s) {listing(actions)} and none of the classes "
            f"{listing(labels)}, so that decide() never says a class. Name a class too, as "
            f"{{{labels[0]!r}: {{}}, ...}}, and all of them can be. If none is meant to be, pass a "
            "data frame of actions (rows) by classes (columns): of that nothing is told."
        )


class SharedColumnsWarning(DiscriminantWarning):
    """Sources to be fused share columns."""

    @classmethod
    def of_columns(cls, columns: Sequence[object]) -> SharedColumnsWarning:
        return cls(
            f"Column(s) {listing(columns)} belong to more than one source, so what they say is "
            "counted more than once: sources are fused as independent within each class."
        )
