"""The way to the most likely coefficients that suits a table.

tall      white coordinates from the products of the features
wide      the directions that the rows span, if there are more features than rows
sparse    scaled columns alone, if there are too many features for their products
net       the columns themselves, if the penalty has absolute values
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from discriminant.assessment.class_inference import ClassFit
from discriminant.assessment.kept import kept_for_inference
from discriminant.engines.engine import anchor_of, fold, read_moments
from discriminant.engines.parted import AnyTable, Parted, in_memory
from discriminant.errors import OptionError
from discriminant.estimators.spanned import Spanned
from discriminant.models.elastic import Columns, fit_net
from discriminant.models.logistic import Fit, Wish, fit_logistic, fit_scaled, penalty_scale
from discriminant.models.rules import LinearRule
from discriminant.models.separation import Separation, separation
from discriminant.models.wide import is_wide
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.columns import ColumnReading, ColumnSums
from discriminant.moments.slope import Pass
from discriminant.table.schema import Block, Floats, is_sparse
from discriminant.table.source import Table

_LARGE = 1500  # features of sparse rows; the products of more are not kept
_LONG = 5_000_000  # numbers of a table that is not read again for digits beyond the tests
_SAMPLE = 1 << 21  # numbers in the rows that the curvature is sketched from


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a table says of its coefficients."""

    fit: Fit
    rule: LinearRule  # K scores, or one for two classes
    apart: Separation | None = None  # None where it was not looked for
    kept: ClassFit | None = None  # for inference, where that is meaningful
    wide: bool = False  # whether there are more features than rows


def most_likely(table: AnyTable, wish: Wish) -> Outcome:
    """Fit in the way that suits the table."""
    wish = replace(wish, foresee=len(table) * table.width > _LONG, lightest=_lightest(table))
    if wish.ridge and wish.l1_ratio:
        return _net(table, wish)
    if is_large(table):
        return _sparse(in_memory(table, "A fit to sparse rows"), wish)
    if is_wide(len(table), table.width):
        return _wide(in_memory(table, "A fit to fewer rows than features"), wish)
    return _tall(table, wish)


def _tall(table: AnyTable, wish: Wish) -> Outcome:
    read = partial(fold, table)
    moments = read_moments(table, detail="pooled")
    found = fit_logistic(read, moments, sample_of(table), wish)
    rule = found.rule(table.schema.labels)
    if wish.ridge:
        return Outcome(found, rule)
    apart = None if wish.jeffreys else _apart(found, read, moments, intercept=wish.intercept)
    kept = None if apart else kept_for_inference(found, read, moments, wish.link)
    return Outcome(found, rule, apart, kept)


def _wide(table: Table, wish: Wish) -> Outcome:
    """In directions, in which columns are standardised already."""
    anchor = anchor_of(table)
    if not wish.intercept:
        anchor = Anchor(np.zeros_like(anchor.origin), anchor.unit)
    spanned = Spanned.of(table, anchor, centred=wish.intercept, standardize=wish.standardize)
    found = _tall(spanned.table, replace(wish, standardize=False))
    apart = found.apart
    if apart:
        apart = replace(apart, columns=table.schema.features, direction=None)
    return Outcome(found.fit, spanned.widened(found.rule), apart, wide=True)


def _sparse(table: Table, wish: Wish) -> Outcome:
    if not wish.ridge or wish.jeffreys:
        raise OptionError.of(
            "ridge",
            wish.ridge,
            f"more than 0 for sparse rows of {table.width} features (1/{len(table)}, one over "
            "the rows, is what liblinear calls C=1), without bias_reduction",
        )
    if wish.solver not in ("auto", "lbfgs"):
        allowed = f"'auto' or 'lbfgs' for sparse rows of {table.width} features"
        raise OptionError.of("solver", wish.solver, allowed)
    found = fit_scaled(
        partial(fold, table),
        column_sums(table),
        _class_weight(table),
        sample_of(table),
        features=table.schema.features,
        wish=wish,
    )
    return Outcome(found, found.rule(table.schema.labels))


def _net(table: AnyTable, wish: Wish) -> Outcome:
    if isinstance(table, Table) and is_large(table):
        weight, features = _class_weight(table), table.schema.features
        columns = Columns.of_sums(column_sums(table), features=features, weight=weight)
    else:
        moments = read_moments(table, detail="diagonal")
        columns = Columns.of_moments(moments, intercept=wish.intercept)
    found = fit_net(partial(fold, table), columns, wish)
    return Outcome(found, found.rule(table.schema.labels))


def is_large(table: AnyTable) -> bool:
    """Whether rows are sparse and their columns too many for products."""
    if isinstance(table, Parted):
        return False
    return is_sparse(table.features) and table.width > _LARGE


def _apart(found: Fit, read: Pass, moments: ClassMoments, *, intercept: bool) -> Separation:
    """Whether classes are separated: no if overlap is proved, else as a linear programme says."""
    if found.overlap:
        return Separation("none", None, (), (), 0)
    coef, level = found.coordinates.coefficients(found.descent.theta)
    if coef.shape[1] == 1:
        coef, level = np.hstack([-coef, coef]), np.hstack([-level, level])
    spread = penalty_scale(moments.at(found.anchor), standardize=True, intercept=intercept)
    return separation(
        read,
        anchor=found.anchor,
        features=moments.features,
        labels=moments.labels,
        spread=spread,
        start=np.vstack([coef, level]),
        intercept=intercept,
    )


def column_sums(table: Table) -> ColumnSums:
    """Read twice: for the means, and about them."""
    features = table.schema.features
    first: ColumnSums = fold(table, ColumnReading(features, np.zeros(table.width)))
    return fold(table, ColumnReading(features, first.mean))


def _lightest(table: AnyTable) -> float:
    """The least weight of a row that counts."""
    if isinstance(table, Parted):
        return table.lightest
    if table.weight is None:
        return 1.0
    return float(np.min(table.weight, where=table.weight > 0, initial=np.inf))


def _class_weight(table: Table) -> Floats:
    found = np.bincount(table.codes, table.weight, minlength=len(table.schema.labels))
    return np.asarray(found, dtype=np.float64)


def sample_of(table: AnyTable) -> Block:
    """Rows that count, spread over the table, in no step with whatever it repeats; none twice."""
    if isinstance(table, Parted):
        table = table.drawn
    some = None if table.weight is None else np.flatnonzero(table.weight > 0)
    rows = len(table) if some is None else len(some)
    count = min(rows, int(np.clip(_SAMPLE // table.held, 2048, 32768)))
    if count == len(table):
        return table.block(0, count)
    places = np.arange(count) + np.random.default_rng(0).random(count)
    chosen = np.unique((places * (rows / count)).astype(np.intp))
    taken = table.take(chosen if some is None else some[chosen])
    return taken.block(0, len(taken))
