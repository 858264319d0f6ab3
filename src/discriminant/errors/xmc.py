"""Files of sparse rows, XMC text or svmlight, and the lines in them that are wrong."""

from __future__ import annotations

from discriminant.errors.base import DiscriminantWarning
from discriminant.errors.files import FileError


class SparseFileError(FileError):
    """A file of sparse rows cannot be read: the line, what stands there, and what should."""

    @classmethod
    def of_header(cls, path: str, found: str, wanted: str) -> SparseFileError:
        return cls(
            f"{path}, line 1: the header should be {wanted}, whole numbers parted by spaces, and "
            f"is {found!r}. Put it before the rows; a file without a header is read by "
            "read_svmlight."
        )

    @classmethod
    def without_header(cls, path: str, wanted: str) -> SparseFileError:
        return cls(
            f"{path} is empty: it should begin with a header, {wanted}, and a line for each row. "
            "Was it copied or written to the end?"
        )

    @classmethod
    def without_rows(cls, path: str) -> SparseFileError:
        return cls(
            f"{path}: no rows (0 sample(s)). Was it copied or written to the end? Rows are lines "
            "'label,label feature:value feature:value', those of XMC text below a header 'rows "
            "features labels'."
        )

    @classmethod
    def not_sparse(cls, path: str) -> SparseFileError:
        return cls(
            f"{path} is no file of sparse rows: its first line is neither the header of XMC text, "
            "'rows features labels', nor 'label,label feature:value' of svmlight. If it is a "
            "table: a label tree that was fitted to one ('fit --target COLUMN') answers tables, "
            "and one that was fitted to sparse rows answers such files."
        )

    @classmethod
    def of_width(cls, path: str, found: int, wanted: int) -> SparseFileError:
        return cls(
            f"{path}, line 1: the header tells of {found} features, and the rows that were learnt "
            f"from have {wanted}. Columns are told apart by their number alone: pass a file whose "
            "features are the same ones."
        )

    @classmethod
    def unwritable(cls, path: str, row: int, feature: int, value: object) -> SparseFileError:
        return cls(
            f"{path} was not written: row {row}, feature {feature} (counted from 0) is {value}, "
            "and no reader takes that. Leave the feature out, or give it a value."
        )

    @classmethod
    def too_few(cls, path: str, *, told: int, found: int) -> SparseFileError:
        return cls(
            f"{path}: the header (line 1) tells of {told} rows and the file ends after {found}. "
            "Was it copied or written to the end? Fetch it again, or correct the header."
        )

    @classmethod
    def too_many(cls, path: str, line: int, told: int) -> SparseFileError:
        return cls(
            f"{path}, line {line}: a row more than the {told} that the header (line 1) tells of. "
            "Correct the header, or remove what follows the last row."
        )

    @classmethod
    def of_token(cls, path: str, line: int, found: str, wanted: str) -> SparseFileError:
        return cls(
            f"{path}, line {line}: {_shown(found)} stands where {wanted} should. A row is "
            "'label,label feature:value feature:value': correct the line."
        )

    @classmethod
    def negative(cls, path: str, line: int, found: str) -> SparseFileError:
        return cls(
            f"{path}, line {line}: label {_shown(found)}, and labels are numbers counted from 0. "
            "Of two classes that are -1 and 1, write 0 for -1; read_svmlight(path) reads any "
            "numbers, one for each row, for model.fit(X, y)."
        )

    @classmethod
    def of_size(cls, path: str, found: int, most: int) -> SparseFileError:
        return cls(
            f"{path}, line 1: the header tells of {found:,}, and rows, features and labels go up "
            f"to {most:,}. Correct the header, 'rows features labels'."
        )

    @classmethod
    def of_folder(cls, path: str) -> SparseFileError:
        return cls(f"{path} is a folder: a label tree of sparse rows takes one file. Name it.")

    @classmethod
    def of_range(
        cls, path: str, line: int, kind: str, found: int, *, first: int, many: int
    ) -> SparseFileError:
        return cls(
            f"{path}, line {line}: {kind} {found}, where there are {many} {kind}s, {first} to "
            f"{first + many - 1}. Correct the line, or the number of {kind}s."
        )

    @classmethod
    def repeated(cls, path: str, line: int, kind: str, found: int) -> SparseFileError:
        return cls(
            f"{path}, line {line}: {kind} {found} stands twice in the row. Keep one of them: "
            "which of two is meant cannot be known."
        )

    @classmethod
    def not_finite(cls, path: str, line: int, feature: int, found: str) -> SparseFileError:
        return cls(
            f"{path}, line {line}: feature {feature} is {_shown(found)}, which is no finite "
            "number. Leave the feature out (it is 0 then), or give it a value."
        )

    @classmethod
    def one_label(cls, path: str, line: int, found: int) -> SparseFileError:
        return cls(
            f"{path}, line {line}: {found} labels where each row should have one. Pass many=True "
            "to read sets of labels."
        )

    @classmethod
    def of_nothing(cls, path: str, row: int, many: int) -> SparseFileError:
        return cls(
            f"{path}: row {row} has neither labels nor features (so have {many} in all), and "
            "svmlight has no line for that. Leave such rows out, or write them with write_xmc."
        )

    @classmethod
    def of_lengths(cls, path: str, rows: int, labels: str, sets: int) -> SparseFileError:
        return cls(
            f"{path} has {rows} rows and {labels} has {sets}: row i of one should belong to row i "
            "of the other. Were both made by the same run?"
        )


class MoreFeaturesWarning(DiscriminantWarning):
    """A file of svmlight has features that the model does not know."""

    @classmethod
    def of(cls, path: str, last: int, first: int, known: int) -> MoreFeaturesWarning:
        return cls(
            f"{path} has features up to {last}, and the model knows {known}, {first} to "
            f"{first + known - 1}: it has no weight for the others, and they were left out. If "
            "the file counts its features otherwise than the rows that were learnt from, say "
            f"--first {1 - first}."
        )


class FirstFeatureWarning(DiscriminantWarning):
    """A file of svmlight does not tell whether its features count from 0 or from 1."""

    @classmethod
    def of(cls, path: str, features: int) -> FirstFeatureWarning:
        return cls(
            f"{path} does not tell whether its features count from 0 or from 1: there are "
            f"{features}, and it has no feature 0 and no feature {features} (feature {features} "
            "would be the last counted from 1). It was read as counted from 1; if it counts from "
            "0, each value stands in the column before its own. Say which: --first 0 or --first 1 "
            "(commands), first=0 (read_svmlight), model.first_feature_ = 0 (predict_file). A model "
            "that 'discriminant fit' makes of svmlight remembers it."
        )


def _shown(text: str, most: int = 40) -> str:
    return repr(text if len(text) <= most else text[:most] + "…")
