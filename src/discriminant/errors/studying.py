"""What a study, or the command line, cannot do."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import DiscriminantError, DiscriminantWarning, InputError, listing


class StudyError(InputError):
    """A study is asked for what it does not have."""

    @classmethod
    def unknown_model(cls, name: object, known: Sequence[str]) -> StudyError:
        if name == "label-tree":
            return cls(
                "A label tree is for very many classes, and is not compared with other models: "
                "'discriminant fit' with --target and --model label-tree makes one of a table, and "
                "'discriminant assess' measures it on other rows. Models that are compared are "
                f"{listing(known, most=20)}."
            )
        return cls(f"There is no model '{name}'. Choose among {listing(known, most=20)}.")

    @classmethod
    def no_models(cls) -> StudyError:
        return cls("No model is named to compare. Name one or more, or none at all for all.")

    @classmethod
    def not_compared(cls, name: object, known: Sequence[str]) -> StudyError:
        return cls(
            f"Model '{name}' was not compared. Compared were {listing(known, most=20)}: choose one "
            "of them, or compare again with it."
        )

    @classmethod
    def none_left(cls, reasons: Sequence[tuple[str, str]]) -> StudyError:
        told = " ".join(f"{name}: {why}" for name, why in reasons[:3])
        return cls(f"No model could be fitted. {told}")

    @classmethod
    def not_gaussian(cls) -> StudyError:
        return cls(
            "missing='marginal' is for LDA, QDA, RDA and the nearest mean, which can do without a "
            "feature. Use 'mean' or 'indicator' for the others."
        )

    @classmethod
    def no_grid(cls, rows: int, features: int) -> StudyError:
        return cls(
            "its settings are searched only where rows are at least twice as many as features, and "
            f"here are {rows} rows of {features} features. LDA with shrinkage serves there."
        )

    @classmethod
    def no_probabilities(cls, name: object) -> StudyError:
        return cls(
            f"Model '{name}' gives no probabilities, which this needs. Take another, for example "
            "'lda'."
        )

    @classmethod
    def none_with_probabilities(cls, names: Sequence[str], use: str) -> StudyError:
        give = "does not give" if len(names) == 1 else "do not give"
        return cls(
            f"{listing(names, most=20)} {give} probabilities, which {use}. Add a model that does, "
            "such as 'lda', or select by error (--by error) and leave costs and --reject out."
        )

    @classmethod
    def nothing_to_weigh(cls, name: object) -> StudyError:
        return cls(
            "Costs or a reject option were asked for by `decide`, and model "
            f"'{name}' gives no probabilities for them. Take another, for example 'lda', or call "
            "`decide()` before: without costs it takes them back."
        )


class ModelLeftOutWarning(DiscriminantWarning):
    """A model of the family does not suit the rows and is not compared."""

    @classmethod
    def of(cls, name: str, why: str) -> ModelLeftOutWarning:
        return cls(f"{name} is left out of the comparison: {why}")


class DrawnRowsWarning(DiscriminantWarning):
    """A model was fitted to some rows of many."""

    @classmethod
    def of(cls, name: str, drawn: int, rows: int) -> DrawnRowsWarning:
        return cls(
            f"{name} must see rows, and was fitted to {drawn:,} drawn of {rows:,} that are in "
            "parts. Models made from moments, and Logistic, are fitted to all."
        )


class OutOfMemoryError(DiscriminantError):
    """A command needs more memory than it may use."""

    @classmethod
    def limit_too_low(cls, limit: int, required: int) -> OutOfMemoryError:
        return cls(
            f"Out of memory: this process is limited to {limit >> 20:,} MB of address space, and "
            f"needs at least {required >> 20:,} MB. Raise the limit: ulimit -v {required >> 10}, "
            "or more for a large table."
        )

    @classmethod
    def while_running(cls, limit: int | None) -> OutOfMemoryError:
        return cls(f"Out of memory{_at_limit(limit)}. {_LESS_MEMORY}")

    @classmethod
    def ended_by(cls, signal: str, limit: int) -> OutOfMemoryError:
        return cls(
            f"Out of memory{_at_limit(limit)}, probably: a library ended the process ({signal}). "
            f"{_LESS_MEMORY}"
        )


_LESS_MEMORY = (
    "Use fewer rows or columns, read the file in parts with --engine files, or raise the limit."
)


def _at_limit(limit: int | None) -> str:
    return "" if limit is None else f" at the limit of {limit >> 20:,} MB of address space"


class CommandError(InputError):
    """The command line asks for what cannot be."""

    @classmethod
    def not_moments(cls, path: object, kind: str) -> CommandError:
        return cls(
            f"{path} holds {kind}, not moments. Make a file of moments with 'discriminant moments'."
        )

    @classmethod
    def no_rows(cls, path: object, names: Sequence[str]) -> CommandError:
        return cls(
            f"{path} holds moments, of which models are made but cannot be compared: that takes "
            f"held-out rows. Name one with --model: {', '.join(names)}."
        )

    @classmethod
    def needs_rows(
        cls, path: object, model: str, detail: str, names: Sequence[str]
    ) -> CommandError:
        return cls(
            f"{path} holds moments of detail '{detail}', and '{model}' cannot be made from these. "
            f"Name another with --model ({', '.join(names)}), read moments of detail 'class', or "
            "fit to the table itself."
        )

    @classmethod
    def not_a_model(cls, path: object, kind: str) -> CommandError:
        if kind.endswith("Moments"):
            return cls(
                f"{path} holds moments, not a model. Make a model of them with 'discriminant fit "
                f"{path} --model lda --out ...'."
            )
        return cls(f"{path} holds {kind}, not a model. Make a model with 'discriminant fit'.")

    @classmethod
    def needs_columns(cls, path: object, kind: str) -> CommandError:
        return cls(
            f"{path} holds a {kind} that knows no columns of a table. Use a model of 'discriminant "
            "fit' or 'discriminant report', or save an Encoded(...) of it."
        )

    @classmethod
    def unused(cls, option: str, reason: str) -> CommandError:
        decided = option in ("--cost", "--reject")
        other = (
            "; Decision(model, ...) decides by costs, or rejects, from Python" if decided else ""
        )
        return cls(f"{option} {reason}. Leave {option} out{other}.")

    @classmethod
    def sparse_rows(cls, path: object, kind: str) -> CommandError:
        return cls(
            f"{path} holds sparse rows ({kind}), not a table: it has no columns of names, and the "
            "labels of a row stand at the start of its line. To fit a label tree to it, pass "
            "--model label-tree and no --target; to predict, use a label tree that was fitted to "
            "such a file."
        )

    @classmethod
    def bad_json(cls, option: str, text: str, why: str) -> CommandError:
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        return cls(f"{option} is not valid JSON ({why}): {shown!r}. Write for example {_COST}.")

    @classmethod
    def same_file(cls, path: object) -> CommandError:
        return cls(
            f"{path} is both read and written. Name another file to write to, so that nothing is "
            "lost."
        )

    @classmethod
    def same_place(cls, first: object, second: object) -> CommandError:
        them = f"{first}" if str(first) == str(second) else f"{first} and {second}, one file,"
        return cls(
            f"{them} would be written twice, and what is written first would be lost. Name "
            "another file for one of them."
        )

    @classmethod
    def would_overwrite(cls, path: object) -> CommandError:
        return cls(
            f"{path} is there already and holds something else. Name another folder, or pass "
            "--force to write over it. Nothing was written."
        )

    @classmethod
    def taken_column(cls, path: object, names: Sequence[str]) -> CommandError:
        return cls(
            f"{path} has already column(s) {listing(names)}, which the answer would repeat. Rename "
            "them, or pass a prefix (--prefix)."
        )


class CommandWarning(DiscriminantWarning):
    """The command line asks for what is hardly meant."""

    @classmethod
    def counted_twice(cls, first: str, again: str) -> CommandWarning:
        same = f"{again} is named twice" if first == again else f"{first} and {again} are the same"
        return cls(f"{same}: these rows count twice in the sum. Leave one out if it is not meant.")


_COST = '\'{"yes": {"no": 5}}\''
