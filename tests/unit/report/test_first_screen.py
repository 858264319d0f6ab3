"""Ten problems of data, each of which the first screen of the report must name."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.report.html import render

_N = 600


def _sound(seed=0, n=_N):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 4)).round(4)
    lead = X @ [1.0, 0.8, 0.5, 0.0] + generator.normal(size=n)
    frame = pd.DataFrame(X, columns=["age", "dose", "score", "mass"])
    return frame.assign(kind=np.where(lead > 0, "ill", "well")), generator


def noise():
    frame, generator = _sound()
    return frame.assign(kind=generator.choice(["ill", "well"], _N))


def leak():
    frame, generator = _sound()
    return frame.assign(bill=(frame["kind"] == "ill") * 9.0 + generator.random(_N))


def sentinel():
    frame, generator = _sound()
    return frame.assign(dose=np.where(generator.random(_N) < 0.07, -999.0, frame["dose"]))


def groups():
    frame, generator = _sound(n=120)
    rows = frame.loc[frame.index.repeat(5)].reset_index(drop=True)
    noise = generator.normal(scale=0.01, size=(len(rows), 4))
    rows[["age", "dose", "score", "mass"]] += noise
    return rows.assign(patient=np.repeat(np.arange(120) * 7 + 1000, 5))


def duplicates():
    frame, _ = _sound(n=300)
    return pd.concat([frame, frame.iloc[:150]], ignore_index=True)


def doubled_column():
    frame, _ = _sound()
    return frame.assign(age_again=frame["age"])


def shuffled_labels():
    frame, generator = _sound()
    return frame.assign(kind=generator.permutation(frame["kind"]))


def imbalance():
    frame, generator = _sound(n=3000)
    lead = frame["age"] + frame["dose"] + generator.normal(size=len(frame))
    return frame.assign(kind=np.where(lead > np.sort(lead)[-30], "ill", "well"))


def identifier():
    frame, generator = _sound()
    return frame.assign(customer_id=generator.permutation(_N) + 50_000)


def time_drift():
    frame, generator = _sound()
    steps = np.linspace(0.0, 3.0, _N)
    when = pd.date_range("2024-01-01", periods=_N, freq="D").strftime("%Y-%m-%d")
    return frame.assign(mass=frame["mass"] + steps + generator.normal(size=_N), day=when)


TRAPS = {
    noise: r"Do not use it: no better than guessing",
    leak: r"stop Leak: bill",
    sentinel: r"-999 in dose probably means missing",
    groups: r"Groups of rows: patient",
    duplicates: r"\d+ duplicate rows",
    doubled_column: r"age_again duplicates age|age duplicates age_again",
    shuffled_labels: r"Do not use it: no better than guessing",
    imbalance: r"Imbalance: 1.0% ill",
    identifier: r"(?i)identifier .*customer_id",
    time_drift: r"Drift: .*mass|mass.* drift",
}


def first_screen(frame):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = dd.study(frame, target="kind")
        study.compare(["lda"])
        page = render(study.facts())
    header = page.split("<header")[1].split("<nav")[0]
    return " ".join(re.sub(r"<(style|svg).*?</\1>|<[^>]*>", " ", header, flags=re.DOTALL).split())


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_first_screen_names_the_problem(trap):
    assert re.search(TRAPS[trap], first_screen(trap()))


def test_first_screen_of_sound_data_says_use_it_and_warns_of_nothing():
    text = first_screen(_sound()[0])
    assert re.search("Use it. It misclassifies", text)
    assert not re.search("stop|warning|duplicate|Leak|Drift|Groups", text)
