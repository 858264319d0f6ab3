"""Tables with more features than rows, in the few directions that their rows span."""

from __future__ import annotations

from dataclasses import dataclass

from discriminant.models.row_space import RowSpace
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.table.schema import Schema
from discriminant.table.source import Table


@dataclass(frozen=True, slots=True, eq=False)
class Spanned:
    """A table of directions, and the way back to the features."""

    table: Table  # the same rows; its columns are directions
    anchor: Anchor  # of the features
    space: RowSpace

    @classmethod
    def of(
        cls, table: Table, anchor: Anchor, *, centred: bool, standardize: bool = True
    ) -> Spanned:
        """Directions of a table about an anchor of its features."""
        table.blame()
        offsets = anchor.offsets(table.features[:])
        space = RowSpace.of(offsets, weight=table.weight, centred=centred, standardize=standardize)
        names = tuple(f"direction {j}" for j in range(space.rows.shape[1]))
        schema = Schema(names, table.schema.labels)
        narrow = Table(schema, space.rows, table.codes, table.weight, table.responses)
        return cls(narrow, anchor, space)

    def widened(self, rule: LinearRule) -> LinearRule:
        """The rule for the features, of one for the directions."""
        slope, at_zero = rule.slopes()
        coef, intercept = self.space.coefficients(slope.T, at_zero)
        return LinearRule(rule.labels, self.anchor, coef.T, intercept)
