"""Errors about classes that are rare: their weights, and rows drawn or made up for them."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import DiscriminantWarning, InputError, listing


class ResamplingError(InputError):
    """Rows cannot be drawn or made up as asked."""

    @classmethod
    def of_neighbours(cls, label: object, rows: int, neighbours: int) -> ResamplingError:
        fewer = f"neighbours={rows - 1} or less, or " if rows > 1 else ""
        return cls(
            f"Class '{label}' has {rows} row(s), and SMOTE with neighbours={neighbours} needs at "
            f"least {neighbours + 1}: a row and {neighbours} other(s). Pass {fewer}method='over', "
            "which repeats rows, or weigh the classes (Reweighted)."
        )

    @classmethod
    def of_ratio(cls, ratio: float, least: float) -> ResamplingError:
        return cls(
            f"strategy={ratio:g} is a ratio of rare to frequent rows, and without resampling it is "
            f"{least:.4g} already. Pass one above that and up to 1, or 'auto' for equal numbers."
        )

    @classmethod
    def ratio_of_many(cls, ratio: float, labels: Sequence[object]) -> ResamplingError:
        return cls(
            f"strategy={ratio:g} is a ratio of two classes, and there are {len(labels)}: "
            f"{listing(labels, 20)}. Pass {{class: rows}} or 'auto'."
        )

    @classmethod
    def of_rows(cls, label: object, wanted: int, rows: int, method: str) -> ResamplingError:
        bound = f"{rows} or fewer" if method == "under" else f"{rows} or more"
        return cls(
            f"Class '{label}' has {rows} row(s) and strategy asks for {wanted}: method='{method}' "
            f"can give it {bound}."
        )

    @classmethod
    def of_sample_weight(cls, name: str) -> ResamplingError:
        return cls(
            f"{name} draws whole rows and takes no sample_weight. Weigh classes instead of drawing "
            "from them (Reweighted, whose fit takes sample_weight), or leave it out."
        )

    @classmethod
    def of_weighted_moments(cls, label: object, rows: int, weight: float) -> ResamplingError:
        return cls(
            f"Rows are drawn one by one, and in these moments the {rows} row(s) of class '{label}' "
            f"have weights, {weight:g} in all. Pass moments of rows without weights, or weigh the "
            "classes (Reweighted)."
        )

    @classmethod
    def nominal_missing(cls, column: str, rows: int) -> ResamplingError:
        return cls(
            f"Nominal column '{column}' has {rows} missing cell(s): fill them, with a category of "
            "their own perhaps."
        )

    @classmethod
    def nominal_sparse(cls) -> ResamplingError:
        return cls(
            "Columns of a sparse matrix cannot be nominal: pass an array or a data frame, or "
            "nominal=None."
        )

    @classmethod
    def of_nominal(cls, columns: object, width: int) -> ResamplingError:
        return cls(
            f"nominal={columns!r} names columns that the {width} of X are not: pass their names, "
            "or their places counted from 0."
        )


class ClassWeightError(InputError):
    """Class weights cannot be used."""

    @classmethod
    def of_class(cls, label: object, value: float) -> ClassWeightError:
        return cls(
            f"The weight of class '{label}' is {value:g}: it must be positive and finite. To leave "
            "a class out, drop its rows."
        )

    @classmethod
    def not_taken(cls, name: str) -> ClassWeightError:
        return cls(
            f"{name} takes no sample_weight, so its classes cannot be weighed: resample them "
            "(Resampled, EasyEnsemble), or move the threshold afterwards (Decision)."
        )


class WayLeftOutWarning(DiscriminantWarning):
    """A treatment of rare classes could not be measured."""

    @classmethod
    def of(cls, way: str, fold: int, why: str) -> WayLeftOutWarning:
        return cls(
            f"'{way}' is not measured, for it cannot be fitted without the rows of fold {fold}: "
            f"{why} Pass fewer folds, or other ways=."
        )
