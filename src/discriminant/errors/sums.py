"""Moments that do not fit together, or have lost their digits."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import DiscriminantError, InputError, listing


class MomentsMismatchError(InputError):
    """Two summaries cannot be put together."""

    @classmethod
    def of_features(cls, ours: Sequence[str], theirs: Sequence[str]) -> MomentsMismatchError:
        missing = [n for n in ours if n not in set(theirs)]
        extra = [n for n in theirs if n not in set(ours)]
        differ = (
            f"only in the first: {listing(missing) or 'none'}; "
            f"only in the second: {listing(extra) or 'none'}"
            if missing or extra
            else "the same names in another order"
        )
        return cls(
            f"Moments of {len(ours)} and {len(theirs)} features do not add ({differ}). "
            "Select the common features first: moments.select([...])."
        )

    @classmethod
    def of_detail(cls, ours: str, theirs: str) -> MomentsMismatchError:
        return cls(
            f"Moments of detail '{ours}' and '{theirs}' do not add. Bring the finer one down "
            "first with moments.reduce(detail)."
        )

    @classmethod
    def needs_detail(cls, what: str, needed: str, found: str) -> MomentsMismatchError:
        return cls(
            f"{what} needs moments of detail '{needed}' and these are '{found}'. "
            f"Read them with moments(X, y, detail='{needed}')."
        )

    @classmethod
    def neither(cls, what: str, kind: str, detail: str) -> MomentsMismatchError:
        return cls(
            f"{what} is found from rows and their labels, or from their moments, and this is a "
            f"{kind} alone: pass X and y, or moments(X, y, detail='{detail}')."
        )

    @classmethod
    def of_shape(
        cls, name: str, found: tuple[int, ...], wanted: tuple[int, ...]
    ) -> MomentsMismatchError:
        return cls(
            f"'{name}' has shape {found} where these classes, features and detail make it {wanted}."
            " Read moments with moments(X, y), or start from ClassMoments.empty(...)."
        )

    @classmethod
    def of_removal(cls, label: object, rows: int, removed: int) -> MomentsMismatchError:
        return cls(
            f"Cannot remove {removed} row(s) of class '{label}': only {rows} are in the moments."
        )

    @classmethod
    def of_weight_removal(
        cls, label: object, weight: float, removed: float
    ) -> MomentsMismatchError:
        return cls(
            f"Cannot remove weight {removed:g} from class '{label}', which weighs {weight:g}. "
            "Remove rows with the weights they were added with."
        )

    @classmethod
    def of_rows(cls, label: object, missing: int, removed: int, rows: int) -> MomentsMismatchError:
        return cls(
            f"Cannot remove {missing} of {removed} row(s) of class '{label}': they are not among "
            f"the {rows} held, with the same values and weight. Pass rows as they were fitted."
        )

    @classmethod
    def not_kept(cls, features: int) -> MomentsMismatchError:
        return cls(
            f"No moments were kept of the fit to {features} features, which has fewer rows than "
            "that: rows cannot be added or removed. Fit again to all the rows that count."
        )

    @classmethod
    def not_among(cls, label: object | None) -> MomentsMismatchError:
        where = "the classes" if label is None else f"class '{label}'"
        return cls(
            f"The rows to remove cannot have been among the rows of {where}: without them a "
            "variance would be negative. Check their labels, values and weights."
        )


class SitesError(MomentsMismatchError):
    """Moments of two tables whose columns became different things."""

    @classmethod
    def of_option(cls, what: str, ours: object, theirs: object) -> SitesError:
        return cls(
            f"Moments do not add: the first were read with {what}={ours!r}, the second with "
            f"{what}={theirs!r}. Read both tables with the same (--{what})."
        )

    @classmethod
    def of_absent(cls, column: str, *, first: bool) -> SitesError:
        where, other = ("first", "second") if first else ("second", "first")
        return cls(
            f"Moments do not add: column '{column}' is used in the {where} and not in the {other}."
            f" Read both tables without it (exclude=['{column}']), or with the same columns "
            "(columns=[...])."
        )

    @classmethod
    def of_kinds(cls, column: str, ours: str, theirs: str) -> SitesError:
        return cls(
            f"Moments do not add: column '{column}' is {ours} in the first and {theirs} in the "
            f"second. Read both alike: as a category (categories=['{column}']), or without it "
            f"(exclude=['{column}'])."
        )

    @classmethod
    def of_reference(cls, column: str, ours: str | None, theirs: str | None) -> SitesError:
        return cls(
            f"Moments do not add: the reference level of column '{column}' is {ours!r} in the "
            f"first and {theirs!r} in the second, so that its indicators mean different things. "
            "Read both tables with reference=None (--reference none): then all levels are kept."
        )

    @classmethod
    def of_order(cls, column: str, ours: Sequence[str], theirs: Sequence[str]) -> SitesError:
        return cls(
            f"Moments do not add: the levels of column '{column}' are {listing(ours)} in the first "
            f"and {listing(theirs)} in the second. Name all of them for both (ordered, --ordered)."
        )


class PrecisionLostError(DiscriminantError, ArithmeticError):
    """A removal would leave too few correct digits."""

    @classmethod
    def of_column(cls, column: str, label: object, digits: float) -> PrecisionLostError:
        return cls(
            f"After this removal the variance of column '{column}' (class '{label}') would have "
            f"{max(digits, 0):.1f} correct digits left: what stays varies far less than what was "
            "removed, or not at all. Read the remaining rows again instead."
        )
