"""Moments of tables of several sites add, whatever levels each of them met."""

import io
from contextlib import chdir, redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.cli import run as command_line
from discriminant.engines.dispatch import read_moments
from discriminant.engines.moments_with_encoding import TableMoments
from discriminant.errors import SitesError
from discriminant.moments.class_moments import DETAILS
from discriminant.table.load import open_source


def run(*args, cwd, code=0):
    out, err = io.StringIO(), io.StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        found = command_line.run([str(arg) for arg in args])
    assert found == code, err.getvalue()
    return out.getvalue(), err.getvalue()


def site(seed, *, islands, rows=30, year=2020.0):
    rng = np.random.default_rng(seed)
    y = np.array(["a", "b"])[np.arange(rows) % 2]
    size = rng.normal(size=rows) + (y == "b")
    return pd.DataFrame({"size": size, "island": rng.choice(islands, rows), "year": year, "y": y})


def moments_of(frame, *, detail="class", reference=None, **options):
    opened = open_source(frame, target="y", reference=reference, **options)
    return TableMoments.from_moments(read_moments(opened.table, detail=detail), opened.encoding)


NORTH = site(1, islands=["Biscoe", "Dream"])
SOUTH = site(2, islands=["Dream", "Torgersen"], year=2021.0)
ALONE = site(3, islands=["Torgersen"], year=2022.0)


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("pair", [(NORTH, SOUTH), (NORTH, ALONE), (ALONE, SOUTH)])
def test_moments_of_sites_with_different_levels_are_those_of_all_rows(pair, detail):
    whole = moments_of(pd.concat(pair), detail=detail)
    parts = moments_of(pair[0], detail=detail) + moments_of(pair[1], detail=detail)
    parts = parts.select(whole.features).at(whole.anchor)
    np.testing.assert_allclose(parts.scatter, whole.scatter, atol=1e-9)
    np.testing.assert_allclose(parts.means, whole.means, atol=1e-12)


def test_a_site_is_forgotten_again():
    north, south = moments_of(NORTH), moments_of(SOUTH)
    left = ((north + south) - south).select(north.features)
    np.testing.assert_allclose(left.means, north.means, atol=1e-9)


def test_different_reference_levels_are_refused_with_the_way_out():
    kept = [moments_of(frame, reference="first") for frame in (NORTH, SOUTH)]
    with pytest.raises(SitesError, match=r"'Biscoe' in the first.*--reference none"):
        kept[0] + kept[1]


def test_a_column_of_another_kind_is_refused():
    other = SOUTH.assign(island=np.arange(30) % 7)
    with pytest.raises(SitesError, match="'island' is category in the first and number"):
        moments_of(NORTH) + moments_of(other)


def test_a_model_of_the_sum_is_the_model_of_all_rows(tmp_path):
    for name, frame in (("north", NORTH), ("south", SOUTH), ("all", pd.concat((NORTH, SOUTH)))):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    for name in ("north", "south"):
        run("moments", f"{name}.csv", "--target", "y", "--out", f"{name}.m", cwd=tmp_path)
    run("merge", "north.m", "south.m", "--out", "sum.m", cwd=tmp_path)
    run("fit", "sum.m", "--model", "lda", "--out", "sum.model", cwd=tmp_path)
    run("fit", "all.csv", "--target", "y", "--model", "lda", "--out", "all.model", cwd=tmp_path)
    rows = pd.concat((NORTH, SOUTH)).drop(columns="y")
    by_sum, by_rows = (dd.load(tmp_path / f"{name}.model") for name in ("sum", "all"))
    np.testing.assert_allclose(by_sum.predict_proba(rows), by_rows.predict_proba(rows), rtol=1e-9)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["fit", "north.m", "--out", "x.model"], "Name a model with --model: lda"),
        (
            ["fit", "north.m", "--model", "logistic", "--out", "x.model"],
            "cannot be fitted",
        ),
        (["report", "north.m", "--target", "y"], "discriminant fit north.m --model lda"),
        (["predict", "north.m", "north.csv", "--out", "x.csv"], "fit north.m --model lda"),
    ],
)
def test_a_file_of_moments_in_the_wrong_place_says_where_it_belongs(args, told, tmp_path):
    NORTH.to_csv(tmp_path / "north.csv", index=False)
    run("moments", "north.csv", "--target", "y", "--out", "north.m", cwd=tmp_path)
    assert told in run(*args, cwd=tmp_path, code=2)[1]


def two_years(tmp_path):
    """Two files in which different islands are the most frequent ones."""
    for year, islands in ((2021, ["Biscoe", "Biscoe", "Dream"]), (2022, ["Dream", "Torgersen"])):
        site(year, islands=islands, year=float(year)).to_csv(tmp_path / f"{year}.csv", index=False)
    return tmp_path / "2021.csv", tmp_path / "2022.csv"


def test_moments_of_two_files_with_categories_add_in_python(tmp_path):
    first, second = two_years(tmp_path)
    some = {"target": "y", "reference": None, "exclude": ["year"]}
    both = (dd.moments(first, **some) + dd.moments(second, **some)).with_reference()
    frame = pd.concat([pd.read_csv(first), pd.read_csv(second)])
    X = pd.get_dummies(frame[["size", "island"]]).astype(float)
    X = X.drop(columns="island_Dream").to_numpy()  # the most frequent of all rows
    whole = dd.LDA().fit(X, frame["y"])
    assert sorted(both.features) == ["island=Biscoe", "island=Torgersen", "size"]
    model = dd.LDA().fit_moments(both.select(["size", "island=Biscoe", "island=Torgersen"]))
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-10)


def test_moments_that_do_not_add_for_their_references_say_which_option_helps(tmp_path):
    first, second = two_years(tmp_path)
    with pytest.raises(SitesError, match=r"level of column 'island' .* with reference=None"):
        _ = dd.moments(first, target="y") + dd.moments(second, target="y")


def test_an_option_is_named_once_in_a_message_of_the_command_line(tmp_path):
    NORTH.assign(more=np.arange(30) ** 2).to_csv(tmp_path / "more.csv", index=False)
    SOUTH.to_csv(tmp_path / "less.csv", index=False)
    for name in ("more", "less"):
        run("moments", f"{name}.csv", "--target", "y", "--out", f"{name}.m", cwd=tmp_path)
    _, err = run("merge", "more.m", "less.m", "--out", "both.m", cwd=tmp_path, code=2)
    assert "without it (--exclude 'more'), or with the same columns (--column)." in err


def test_moments_are_shown_in_one_line():
    shown = repr(moments_of(NORTH))
    assert shown == "TableMoments(30 rows, 2 classes, 3 features, detail='class')"
