"""Responses and offsets of a regression that cannot be used."""

from __future__ import annotations

from discriminant.errors.base import InputError


class ResponseError(InputError):
    """The numbers to regress on cannot be used."""

    @classmethod
    def missing(cls, row: int, column: int) -> ResponseError:
        return cls(
            f"Input y contains NaN: response {column} is missing in row {row}. Drop such rows."
        )

    @classmethod
    def infinite(cls, row: int, column: int) -> ResponseError:
        return cls(
            f"Input y contains infinity or a value too large for dtype('float64'): response "
            f"{column} of row {row}. Correct or drop the row."
        )

    @classmethod
    def no_number(cls, dtype: str) -> ResponseError:
        if "complex" in dtype:
            return cls("Complex data not supported: y is complex. Pass two columns of responses.")
        return cls(f"y holds {dtype}, not numbers: to predict names use a classifier, say LDA.")

    @classmethod
    def absent(cls, name: str) -> ResponseError:
        return cls(
            f"{name} requires y to be passed, but the target y is None: pass one number a row."
        )

    @classmethod
    def of_classes(cls, name: str) -> ResponseError:
        return cls(
            f"The target of partitioned rows is a class, and {name} needs numbers: read the rows "
            "into memory and pass X and y, or fit a classifier."
        )

    @classmethod
    def several(cls, name: str, responses: int) -> ResponseError:
        return cls(
            f"{name} was fitted to {responses} responses, and a file has one column of predictions:"
            " fit one model for each response, or call predict on a frame."
        )

    @classmethod
    def of_names(cls, name: str) -> ResponseError:
        return cls(
            f"y holds names, and {name} needs numbers: for two classes by name fit Logistic(), or "
            "pass 1.0 for rows of the class that is counted and 0.0 for the others."
        )

    @classmethod
    def of_shape(cls, shape: tuple[int, ...]) -> ResponseError:
        return cls(f"y has shape {shape}: pass one number a row, or (rows, responses).")

    @classmethod
    def of_columns(cls, shape: tuple[int, ...]) -> ResponseError:
        return cls(
            f"y has shape {shape}: pass one number a row. Only family='binomial' takes two "
            "columns, of successes and of failures."
        )

    @classmethod
    def of_width(cls, found: int, fitted: int) -> ResponseError:
        return cls(f"y has {found} response(s), but {fitted} were fitted before: pass as many.")

    @classmethod
    def of_range(
        cls, row: int, count: int, *, asking: str, allowed: str, instead: str
    ) -> ResponseError:
        others = f" (and of {count - 1} more)" if count > 1 else ""
        return cls(
            f"y of row {row}{others}, counted from 0, is not {allowed}, as {asking} needs it. "
            f"Correct or drop the row, or {instead}."
        )

    @classmethod
    def of_one_value(cls, value: float, family: str) -> ResponseError:
        return cls(
            f"y is {value:g} in every row, so that the most likely {family} mean is {value:g} and "
            "its score is infinite: there is nothing to fit. Add rows with other responses."
        )

    @classmethod
    def out_of_reach(cls, size: float, bound: float) -> ResponseError:
        return cls(
            f"The largest response is {size:.3g} in size, and powers of such numbers are no longer "
            f"doubles: it must lie between {1 / bound:.0e} and {bound:.0e}. Measure y in another "
            f"unit: pass y / {size:.0e}."
        )


class OffsetError(InputError):
    """An offset cannot be used."""

    @classmethod
    def not_finite(cls, row: int) -> OffsetError:
        return cls(
            f"offset of row {row} (counted from 0) is not a finite number: correct or drop the row."
        )

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], rows: int) -> OffsetError:
        return cls(f"offset has shape {shape} for {rows} rows: pass one number for each row.")

    @classmethod
    def not_numbers(cls) -> OffsetError:
        return cls("offset holds something other than numbers: pass one number for each row.")

    @classmethod
    def forgotten(cls) -> OffsetError:
        return cls(
            "The fit had an offset, so what it predicts depends on one: pass offset=, or offset=0 "
            "to predict without."
        )
