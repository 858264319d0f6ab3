"""Models, options and names that cannot be put into another language."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import InputError, listing


class ExportError(InputError):
    """Something of a model has no equal in the target; nothing was written."""

    @classmethod
    def of_model(cls, name: str) -> ExportError:
        return cls(
            f"{name} cannot be exported: it is neither one of the models of this package that can "
            "be (label trees cannot) nor a pipeline of them. Nothing was written. Fit another of "
            "ours (LDA, Logistic, ...), or use the file of the model."
        )

    @classmethod
    def of_part(cls, part: str, why: str, instead: str) -> ExportError:
        return cls(f"{part} cannot be exported: {why}. Nothing was written. {instead}")

    @classmethod
    def not_fitted(cls, name: str) -> ExportError:
        return cls(f"This {name} is not fitted yet, so that there is nothing to export. Fit it.")

    @classmethod
    def of_output(cls, name: str, known: Sequence[str]) -> ExportError:
        return cls(f"There is no output '{name}'. This model has {listing(known, 9)}.")

    @classmethod
    def of_probabilities(cls, part: str, why: str, left: Sequence[str]) -> ExportError:
        return cls(
            f"The probabilities of {part} cannot be exported: {why}. Nothing was written. What "
            f"is left can be: pass outputs={list(left)!r}."
        )

    @classmethod
    def of_label(cls, label: object) -> ExportError:
        return cls(
            f"The class {label!r} is a {type(label).__name__}, and only text, integers, booleans "
            "and floats can be exported. Nothing was written. Fit with such labels."
        )

    @classmethod
    def of_verdict(cls, name: str) -> ExportError:
        return cls(
            f"A class is called '{name}', as a row is where it is not decided, so that nobody "
            "could tell them apart. Nothing was written. Rename the class and fit again, or "
            "leave the action out of outputs."
        )

    @classmethod
    def of_text(cls, what: str, name: str) -> ExportError:
        return cls(
            f"The {what} {name!r} has a NUL or half of a surrogate pair in it, which no database "
            "takes. Nothing was written. Rename it and fit again."
        )

    @classmethod
    def of_case(cls, first: str, second: str, target: str) -> ExportError:
        return cls(
            f"The columns '{first}' and '{second}' differ in case alone, which {target} does not "
            "tell apart. Nothing was written. Rename one of them and fit again."
        )

    @classmethod
    def of_target(cls, given: object, allowed: Sequence[str]) -> ExportError:
        return cls(f"There is no export to {given!r}. There is: {listing(allowed)}.")

    @classmethod
    def not_finite(cls, part: str) -> ExportError:
        return cls(
            f"{part} holds a number that is not finite, so that it would mean different things in "
            "different targets. Nothing was written. Fit again and look at the warnings."
        )
