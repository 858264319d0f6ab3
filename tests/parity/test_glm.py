"""Generalised linear models against R's glm: every family and link, weights and offsets.

The frozen fits were started again from their own answer until the coefficients stood still, so they
are held to 1e-8. Where real data are at hand, R's glm stopped when the deviance stood still: its
standard errors are then those of the step before (1e-8 off in one of these), and its coefficients
have some 7 digits for a link that is not canonical. The tolerances there say so.
"""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest

from discriminant import GLM
from tests.parity.golden import frozen

ROWS = frozen("glm_sets")["glm"]
R = frozen("glm")
MEANS = frozen("mean_intervals")
CASES = [(name, plan) for name, plans in R["fits"].items() for plan in plans]

every_fit = pytest.mark.parametrize(
    ("name", "plan"), CASES, ids=[f"{name}-{plan}" for name, plan in CASES]
)


def problem_of(name, plan):
    """Rows, response, weights and offset; a grouped response is a share, weighted by its trials."""
    kind, _ = name.split("-")
    response = np.array(ROWS["responses"][name], float)
    weight = None
    if plan in ("weight", "both"):
        weight = np.array(ROWS["times" if kind == "binomial" else "weight"], float)
    if kind == "grouped":
        weight = np.array(ROWS["trials"], float)
        response = response / weight
    offset = np.array(ROWS["offset"]) if plan in ("offset", "both") else None
    return np.array(ROWS["features"], float), response, weight, offset


@cache
def fit_of(name, plan):
    kind, link = name.split("-")
    features, response, weight, offset = problem_of(name, plan)
    family = "binomial" if kind == "grouped" else kind.lower()
    model = GLM(family, link, intercept=plan != "no_intercept")
    return model.fit(features, response, sample_weight=weight, offset=offset)


def column(told, key):
    """One number of every coefficient, the intercept first."""
    return np.array([row[key] for row in told["coefficients"]])


@every_fit
def test_coefficients_are_those_of_glm(name, plan):
    model, golden = fit_of(name, plan), R["fits"][name][plan]["coef"]
    found = model.coef_ if plan == "no_intercept" else np.append(model.intercept_, model.coef_)
    np.testing.assert_allclose(found, golden, rtol=1e-8)


@every_fit
def test_the_table_of_coefficients_is_that_of_glm(name, plan):
    told, golden = fit_of(name, plan).summary().to_dict(), R["fits"][name][plan]
    letter = golden["statistic_name"]  # z, or t where the dispersion is estimated
    for ours, theirs in (("std_error", "se"), (letter, "statistic"), ("p", "p")):
        np.testing.assert_allclose(column(told, ours), golden[theirs], rtol=1e-8, err_msg=ours)


@every_fit
def test_deviances_and_likelihood_are_those_of_glm(name, plan):
    told, golden = fit_of(name, plan).summary().to_dict(), R["fits"][name][plan]
    keys = ["deviance", "null_deviance", "df_residual", "df_null", "dispersion", "aic", "bic"]
    found = [told[key] for key in [*keys, "log_likelihood"]]
    np.testing.assert_allclose(found, [golden[key] for key in [*keys, "loglik"]], rtol=1e-8)


@every_fit
def test_fitted_means_are_those_of_glm(name, plan):
    features, _, _, offset = problem_of(name, plan)
    found = fit_of(name, plan).predict(features, offset=offset)[R["rows"]]
    np.testing.assert_allclose(found, R["fits"][name][plan]["fitted"], rtol=1e-8)


@every_fit
@pytest.mark.parametrize("method", ["wald", "profile"])
def test_intervals_are_those_of_glm(name, plan, method):
    golden = R["fits"][name][plan]
    found = fit_of(name, plan).intervals(0.95, method, *problem_of(name, plan))
    apart = np.abs(found - np.array(golden[method])) / np.array(golden["se"])[:, None]
    assert apart.max() < 1e-8


@every_fit
def test_leaving_out_a_feature_is_tested_as_by_drop1(name, plan):
    golden = R["fits"][name][plan]["drop"]
    dropped = fit_of(name, plan).drop_each(*problem_of(name, plan))
    np.testing.assert_allclose([test.chi2 for test in dropped], golden["drop1"], rtol=1e-8)
    np.testing.assert_allclose([test.p for test in dropped], golden["drop1_p"], rtol=1e-8)


@pytest.mark.parametrize(
    ("name", "plan"), [(name, plan) for name, plans in MEANS["fits"].items() for plan in plans]
)
def test_intervals_of_means_are_those_of_predict_glm(name, plan):
    golden, model = MEANS["fits"][name][plan], fit_of(name, plan)
    new = problem_of(name, plan)[0][MEANS["rows"]] + MEANS["shift"]
    offset = MEANS["offset"] if plan == "offset" else None
    intervals = model.predict(new, offset, interval=MEANS["level"])
    for ours, theirs in (("estimate", "mean"), ("low", "low"), ("high", "high")):
        np.testing.assert_allclose(
            getattr(intervals, ours), golden[theirs], rtol=1e-8, err_msg=ours
        )


# --- real data ------------------------------------------------------------------------------------


def by_level(table, name, levels):
    """Columns that are 1 at each level but the first, as R codes a factor."""
    return {f"{name}{level}": (table[name] == level).astype(float) for level in levels[1:]}


def birthweight_columns(table):
    race = table["race"].map({1: "white", 2: "black", 3: "other"})
    visits = table["ftv"].clip(upper=2).map({0: "0", 1: "1", 2: "2+"})
    coded = table.assign(race=race, ftv3=visits, ptd=(table["ptl"] > 0).astype(float))
    return {
        **{name: coded[name] for name in ("age", "lwt")},
        **by_level(coded, "race", ["white", "black", "other"]),
        **{name: coded[name] for name in ("smoke", "ptd", "ht", "ui")},
        **by_level(coded, "ftv3", ["0", "1", "2+"]),
    }


def lizard_columns(table):
    levels = {
        "height": ["<5ft", ">=5ft"],
        "diameter": ["<=2in", ">2in"],
        "light": ["sunny", "shady"],
        "time": ["early", "midday", "late"],
    }
    return {k: v for name, kinds in levels.items() for k, v in by_level(table, name, kinds).items()}


def factor_columns(table):
    return {**by_level(table, "outcome", [1, 2, 3]), **by_level(table, "treatment", [1, 2, 3])}


BINOMIAL = {"logit": "logit", "probit": "probit", "cauchit": "cauchit", "cloglog": "cloglog"}
CLASSICS = {  # answer: folder, table, family, link, features, response, weight
    "dobson_poisson_log": (
        *("glm_classics", "dobson", "poisson", "log", factor_columns),
        *(lambda t: t["counts"], None),
    ),
    **{
        f"clotting_gamma_{link}_{lot}": (
            *("glm_classics", "clotting", "gamma", link, lambda t: {"log(u)": np.log(t["u"])}),
            *(lambda t, lot=lot: t[lot], None),
        )
        for link, lot in (("inverse", "lot1"), ("inverse", "lot2"), ("log", "lot1"))
    },
    **{
        f"menarche_{link}": (
            *("glm_classics", "menarche", "binomial", link, lambda t: {"Age": t["Age"]}),
            *(lambda t: t["Menarche"] / t["Total"], lambda t: t["Total"]),
        )
        for link in BINOMIAL
    },
    **{
        f"birthwt_{name}": (
            *("glm_classics", "birthwt", "binomial", link, birthweight_columns),
            *(lambda t: t["low"], None),
        )
        for name, link in (("all", "logit"), ("probit", "probit"))
    },
    "birthwt_weighted": (
        *("glm_classics", "birthwt", "binomial", "logit", lambda t: t[["lwt", "smoke"]]),
        *(lambda t: t["low"], lambda t: np.resize([1, 2, 3], len(t))),
    ),
    **{
        name: (
            *("sep_lizards", "lizards", "binomial", link, lizard_columns),
            lambda t: t["grahami"] / (t["grahami"] + t["opalinus"]),
            lambda t: t["grahami"] + t["opalinus"],
        )
        for name, link in (("ml", "logit"), ("ml_probit", "probit"))
    },
}
CANONICAL = {"poisson": "log", "gamma": "inverse", "binomial": "logit"}


@pytest.mark.parametrize("answer", list(CLASSICS))
def test_classic_tables_are_those_of_glm(shared_data, answer):
    folder, file, family, link, features, response, weight = CLASSICS[answer]
    golden = json.loads((shared_data / folder / "reference.json").read_text())[answer]
    table = pd.read_csv(shared_data / folder / f"{file}.csv")
    columns = pd.DataFrame(features(table))
    weights = None if weight is None else weight(table)
    told = (
        GLM(family, link).fit(columns, response(table), sample_weight=weights).summary().to_dict()
    )
    within = 1e-8 if link == CANONICAL[family] else 1e-6  # see the head of this file
    se = np.array(golden["se"])
    assert np.abs((column(told, "estimate") - golden["coef"]) / se).max() < within
    np.testing.assert_allclose(column(told, "std_error"), se, rtol=max(within, 1e-7))
    found = [told[key] for key in ("deviance", "null_deviance", "aic", "log_likelihood")]
    theirs = [golden[key] for key in ("deviance", "null_deviance", "aic", "loglik")]
    np.testing.assert_allclose(found, theirs, rtol=1e-8)
