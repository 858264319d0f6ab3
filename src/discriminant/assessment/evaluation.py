"""Two doors to an `Assessment`: truth and what was said of it, or a fitted model and rows.

Here labels become codes, and whatever does not fit is told: a class that the model does not know,
a decision that is no action, posteriors that are none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.assessment.answers import check_classifier, log_posterior_or_none, said_by
from discriminant.assessment.measures import Assessment
from discriminant.decision.actions import Reject, Verdict, decided as decided_by, least_cost
from discriminant.decision.costs import Costs
from discriminant.engines.parted import Parted, alone
from discriminant.errors import LabelError, OptionError, PosteriorError, ShapeError
from discriminant.moments.tally import in_order
from discriminant.posterior import off_one
from discriminant.table.class_columns import classes_of_columns
from discriminant.table.labels import check_kinds, encode_labels, joined, one_dimensional
from discriminant.table.schema import Codes, Floats, Labels
from discriminant.table.source import open_weight

Unseen = Literal["error", "count"]


@np.errstate(under="ignore")
def assess(
    truth: Any,
    decided: Any = None,
    *,
    log_posterior: Any = None,
    posterior: Any = None,
    classes: Any = None,
    actions: Iterable[Hashable] = (),
    cost: Any = None,
    reject: Any = None,
    sample_weight: Any = None,
    unseen: Unseen = "error",
) -> Assessment:
    """Measure decisions, posteriors or both against the truth.

    Parameters
    ----------
    truth
        (N,) true labels.
    decided
        (N,) what was decided: labels, REJECT, OUTLIER or one of `actions`. None: the most probable
        class, or what `cost` and `reject` make of the posteriors.
    log_posterior, posterior
        (N, K) logarithms or probabilities, for losses and calibration. The columns of a data frame
        are named by the classes; those of an array are as in `classes`.
    classes
        (K,) labels of the classes that the model knows. None: those that the columns are named by,
        or those of the truth, and of the decisions.
    actions
        Names of actions that are no classes, where `decided` has such.
    cost, reject
        As in `Decision`: how to decide from posteriors, where `decided` is None.
    sample_weight
        (N,) how often each row counts.
    unseen
        Rows of a class that is not among `classes`: 'error' lists them, 'count' counts them, never
        right.

    Examples
    --------
    >>> found = assess(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    >>> found.error, found.recall.tolist(), found.confusion().tolist()
    (0.25, [0.5, 1.0], [[1.0, 0.0], [1.0, 2.0]])
    """
    own, codes = encode_labels(truth)
    n = len(codes)
    _check_one_way(decided, cost, reject)
    known, order = _known(_named(log_posterior, posterior, own, classes), own)
    logs = _logs(log_posterior, posterior, n, known, order)
    given = known if classes is None else known[_known(classes, own)[1]]  # as an array of costs is
    costs = None if cost is None else Costs.of(Costs.of(cost, given), known)
    if decided is None:
        said, names = _from_posteriors(logs, known, costs, reject)
    else:
        said, names = _coded(decided, n)
    allowed = {*actions, *(costs.actions if costs else ())}
    if classes is None and decided is not None and logs is None:
        found = [name for name in names if not isinstance(name, Verdict) and name not in allowed]
        known = joined(known, encode_labels(found)[0]) if found else known
    _check_decisions(said, names, known, allowed)
    all_labels = _with_unseen(own, codes, known, unseen)
    others = in_order({*names, *allowed} - set(all_labels.tolist()))
    place = {name: a for a, name in enumerate([*all_labels.tolist(), *others])}
    columns = np.array([place[label] for label in known.tolist()], dtype=np.intp)
    return Assessment.of(
        np.array([place[label] for label in own.tolist()], dtype=np.intp)[codes],
        np.array([place[name] for name in names], dtype=np.intp)[said],
        labels=all_labels,
        others=others,
        log_posterior=_spread_out(logs, columns, len(all_labels)),
        weight=open_weight(sample_weight, n),
    )


@np.errstate(under="ignore")
def evaluate(
    model: Any, X: Any, y: Any = None, *, sample_weight: Any = None, unseen: Unseen = "error"
) -> Assessment:
    """Measure a fitted classifier, ours or any, on rows whose labels are known.

    What it decides is measured where it has `decide`, as `Decision` has, so that rejected rows
    show; else what it predicts. Its posteriors are measured if it has any.

    Rows in parts (`discriminant.rows`) come without y and are read once; what is found then has
    `auc` too. A model that takes tables (`Encoded`) encodes their columns itself, another is given
    the features that these rows became.

    >>> from discriminant import LDA
    >>> model = LDA().fit([[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], list("aaabbb"))
    >>> evaluate(model, [[0.5], [4.5], [6.0]], list("aab")).recall.tolist()
    [0.5, 1.0]
    """
    check_classifier(model)
    if isinstance(X, Parted):
        from discriminant.assessment.evaluated import evaluate_rows

        alone(y, sample_weight)
        return evaluate_rows(model, X, unseen=unseen)
    if y is None:
        raise LabelError.absent("evaluate")
    said, others = said_by(model, X)
    labels = one_dimensional(y)
    if len(labels) != len(said):
        raise ShapeError.of_truth(len(labels), len(said))
    return assess(
        y,
        said,
        log_posterior=log_posterior_or_none(model, X),
        classes=np.asarray(model.classes_),
        actions=others,
        sample_weight=sample_weight,
        unseen=unseen,
    )


def _check_one_way(decided: Any, cost: Any, reject: Any) -> None:
    """Decisions are given, or are to be made, and not both."""
    for name, value in (("cost", cost), ("reject", reject)):
        if decided is not None and value is not None:
            allowed = "left out where decisions are given: it says how to decide from posteriors"
            raise OptionError.of(name, "given", allowed)


# --- posteriors ----------------------------------------------------------------------------------


def _named(log_posterior: Any, posterior: Any, own: Labels, classes: Any) -> Any:
    """The class of each column: as a data frame names it, or else as `classes` says."""
    for name, given in (("log_posterior", log_posterior), ("posterior", posterior)):
        classes = classes_of_columns(given, found=own.tolist(), classes=classes, what=name)
    return classes


def _known(classes: Any, own: Labels) -> tuple[Labels, npt.NDArray[np.intp]]:
    """The classes in order, and the place in that order of each as given."""
    if classes is None:
        return own, np.arange(len(own))
    known, order = encode_labels(classes)
    if len(known) < len(order):
        raise LabelError.twice(np.asarray(classes).tolist())
    check_kinds(own, known)
    return known, order.astype(np.intp)


def _logs(
    log_posterior: Any, posterior: Any, n: int, known: Labels, order: npt.NDArray[np.intp]
) -> Floats | None:
    """(n, K) logarithms, columns in the order of `known`."""
    if log_posterior is None and posterior is None:
        return None
    if log_posterior is not None and posterior is not None:
        raise OptionError.of("posterior", "given", "left out where log_posterior is given")
    name = "log_posterior" if posterior is None else "posterior"
    found = np.asarray(log_posterior if posterior is None else posterior, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != len(known):
        columns = found.shape[1] if found.ndim == 2 else 1
        raise PosteriorError.of_columns(columns, known.tolist())
    if len(found) != n:
        raise ShapeError.of_lengths(name, len(found), n)
    for row, total in off_one(found if log_posterior is None else np.exp(np.minimum(found, 1.0))):
        raise PosteriorError.not_normalised(row, total, name)
    with np.errstate(divide="ignore"):
        logs = found if posterior is None else np.log(found)
    return logs if (order == np.arange(len(order))).all() else logs[:, np.argsort(order)]


def _spread_out(logs: Floats | None, columns: npt.NDArray[np.intp], classes: int) -> Floats | None:
    """(n, classes) with posterior 0 for the classes that the model does not know."""
    if logs is None or logs.shape[1] == classes:
        return logs
    found = np.full((len(logs), classes), -np.inf)
    found[:, columns] = logs
    return found


# --- decisions -----------------------------------------------------------------------------------


def _from_posteriors(
    logs: Floats | None, known: Labels, costs: Costs | None, reject: Any
) -> tuple[Codes, list[Any]]:
    if logs is None:
        raise OptionError.of("decided", None, "given, or log_posterior= or posterior=")
    if reject is None:
        names = list(known.tolist() if costs is None else costs.actions)
        return least_cost(logs, costs)[0], names
    return _coded(decided_by(logs, labels=known, costs=costs, reject=Reject.of(reject)), len(logs))


def _coded(decided: Any, n: int) -> tuple[Codes, list[Any]]:
    """Places in a list of the distinct decisions."""
    said = one_dimensional(decided)
    if len(said) != n:
        raise ShapeError.of_lengths("decided", len(said), n)
    if said.dtype.kind != "O":
        names, places = encode_labels(said)
        return places, names.tolist()
    missing = [row for row, value in enumerate(said) if value is None or value != value]
    if missing:
        raise LabelError.undecided(missing)
    place: dict[Any, int] = {}
    codes = np.fromiter((place.setdefault(v, len(place)) for v in said), dtype=np.intp, count=n)
    return codes, list(place)


def _check_decisions(said: Codes, names: list[Any], known: Labels, allowed: set[Hashable]) -> None:
    """Every decision is a class, a refusal or an action that was named."""
    classes = {*known.tolist(), *allowed}
    strange = [
        place
        for place, name in enumerate(names)
        if name not in classes and not isinstance(name, Verdict)
    ]
    if strange:
        count = np.bincount(said, minlength=len(names))
        named = {names[place]: int(count[place]) for place in strange}
        raise LabelError.strange(named, known.tolist())


def _with_unseen(own: Labels, codes: Codes, known: Labels, unseen: Unseen) -> Labels:
    """The classes of the model and, if they are to be counted, those it does not know."""
    if unseen not in ("error", "count"):
        raise OptionError.of("unseen", unseen, "'error' or 'count'")
    classes = set(known.tolist())
    count = np.bincount(codes, minlength=len(own))
    new = {label: int(c) for label, c in zip(own.tolist(), count, strict=True)}
    new = {label: c for label, c in new.items() if label not in classes}
    if new and unseen == "error":
        raise LabelError.unseen(new, known.tolist())
    return joined(known, own)
