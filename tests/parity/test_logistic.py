"""Logistic regression against R, statsmodels and 60-digit arithmetic.

Where the references have the same problem they agree to 1e-11 (tests/golden/README.md), but for
nnet::multinom, a quasi-Newton method that is good to 1e-5.
"""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

from discriminant import Logistic
from tests.parity.golden import frozen

SETS = frozen("glm_sets")
R = frozen("logistic_r")
STATSMODELS = frozen("statsmodels")["sets"]
EXACT = frozen("logistic_highprec")


# --- sets and answers -----------------------------------------------------------------------------


def rows_of(name):
    """Features and codes of a set; "two" and "separated_two" are the first two of three classes."""
    if name == "iris":
        features, codes = load_iris(return_X_y=True)
        return features[50:], codes[50:]
    if name == "wine":
        features, codes = load_wine(return_X_y=True)
        return features[:, [0, 2, 4]], codes
    whole = {"two": "classes", "separated_two": "separated"}.get(name, name)
    held = SETS.get(whole) or EXACT["sets"][whole]
    features, codes = np.array(held["features"]), np.array(held["codes"])
    kept = codes < 2 if whole != name else np.full(len(codes), True)
    return features[kept], codes[kept]


def against_first(model):
    """(K - 1, 1 + d): each class less the first, the intercept first."""
    both = np.column_stack([model.intercept_, model.coef_])
    return both if len(both) == 1 else both[1:] - both[0]


def column(model, key):
    """A number of every coefficient in the summary, as `against_first` lays them out."""
    values = [row[key] for row in model.summary().to_dict()["coefficients"]]
    return np.reshape(values, (-1, 1 + model.n_features_in_))


def numbers(strings):
    return np.array(strings, dtype=float)


def correct_digits(found, exact):
    """Of the coefficient that has fewest, at most 15."""
    error = np.abs(found - exact) / np.abs(exact)
    return -np.log10(max(error.max(), 1e-15))


# --- exact arithmetic -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", list(EXACT["trust"]))
def test_coefficients_have_the_digits_we_demand(case):
    plan = EXACT["trust"][case]
    features, codes = rows_of(plan["set"])
    model = Logistic().fit(features * np.array(plan["scale"]) + plan["shift"], codes)
    assert model.converged_
    demanded = 9 if plan["shift"] == 1e6 else 12
    assert correct_digits(against_first(model), numbers(plan["coef"])) >= demanded


@pytest.mark.parametrize("case", list(EXACT["trust"]))
def test_standard_errors_and_likelihood_are_exact_to_eight_digits(case):
    plan = EXACT["trust"][case]
    features, codes = rows_of(plan["set"])
    model = Logistic().fit(features * np.array(plan["scale"]) + plan["shift"], codes)
    np.testing.assert_allclose(column(model, "std_error"), numbers(plan["se"]), rtol=1e-8)
    told = model.summary().to_dict()
    assert told["log_likelihood"] == pytest.approx(float(plan["loglik"]), rel=1e-12)


@pytest.mark.parametrize("name", list(EXACT["ml"]))
@pytest.mark.parametrize(
    ("solver", "within"), [("newton", 1e-12), ("lbfgs", 1e-6), ("gradient", 1e-6)]
)
def test_every_solver_ends_at_the_exact_answer(name, solver, within):
    # All stop at a gradient of 1e-8; Newton's last step then squares the error.
    model = Logistic(solver=solver, max_iter=5000).fit(*rows_of(name))
    assert model.converged_
    np.testing.assert_allclose(against_first(model), numbers(EXACT["ml"][name]["coef"]), within)


@pytest.mark.parametrize("name", list(EXACT["ridge"]))
def test_ridge_is_that_of_exact_arithmetic(name):
    plan = EXACT["ridge"][name]
    rows, kind, _ = name.split("-", 2)
    model = Logistic(ridge=plan["ridge"], standardize=kind == "standardized").fit(*rows_of(rows))
    np.testing.assert_allclose(against_first(model), numbers(plan["coef"]), rtol=1e-8)


@pytest.mark.parametrize("name", list(EXACT["jeffreys"]))
def test_jeffreys_is_that_of_exact_arithmetic(name):
    plan = EXACT["jeffreys"][name]
    model = Logistic(bias_reduction="jeffreys").fit(*rows_of(name))
    np.testing.assert_allclose(against_first(model), numbers(plan["coef"]), rtol=1e-8)
    np.testing.assert_allclose(column(model, "std_error"), numbers(plan["se"]), rtol=1e-8)


# --- R --------------------------------------------------------------------------------------------

GLM = frozen("glm")["fits"]
MEANS = frozen("mean_intervals")


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "cauchit"])
@pytest.mark.parametrize("plan", ["plain", "weight"])
def test_every_link_is_that_of_glm(link, plan):
    rows, golden = SETS["glm"], GLM[f"binomial-{link}"][plan]
    weight = np.array(rows["times"], float) if plan == "weight" else None
    codes = np.array(rows["responses"][f"binomial-{link}"])
    model = Logistic(link).fit(np.array(rows["features"]), codes, sample_weight=weight)
    for ours, theirs in (("estimate", "coef"), ("std_error", "se"), ("z", "statistic"), ("p", "p")):
        np.testing.assert_allclose(column(model, ours)[0], golden[theirs], rtol=1e-8, err_msg=ours)
    told = model.summary().to_dict()
    keys = ["deviance", "null_deviance", "df_residual", "df_null", "aic", "bic", "dispersion"]
    found = [told[key] for key in [*keys, "log_likelihood"]]
    np.testing.assert_allclose(found, [golden[key] for key in [*keys, "loglik"]], rtol=1e-8)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "cauchit"])
def test_wald_intervals_in_the_summary_are_those_of_glm(link):
    rows, golden = SETS["glm"], GLM[f"binomial-{link}"]["plain"]
    codes = np.array(rows["responses"][f"binomial-{link}"])
    model = Logistic(link).fit(np.array(rows["features"]), codes)
    found = np.column_stack([column(model, "low")[0], column(model, "high")[0]])
    np.testing.assert_allclose(found, golden["wald"], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "cauchit"])
@pytest.mark.parametrize("plan", ["plain", "weight"])
def test_intervals_of_probabilities_are_those_of_predict_glm(link, plan):
    rows, golden = SETS["glm"], MEANS["fits"][f"binomial-{link}"][plan]
    features, codes = np.array(rows["features"]), np.array(rows["responses"][f"binomial-{link}"])
    weight = np.array(rows["times"], float) if plan == "weight" else None
    model = Logistic(link).fit(features, codes, sample_weight=weight)
    new = features[MEANS["rows"]] + MEANS["shift"]
    estimate, low, high = model.predict_proba(new, interval=MEANS["level"])
    mean, below, above = (np.array(golden[key]) for key in ("mean", "low", "high"))
    for ours, theirs in ((estimate[:, 1], mean), (low[:, 1], below), (high[:, 1], above)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    np.testing.assert_allclose(low[:, 0], 1 - above, rtol=0, atol=1e-8)
    np.testing.assert_allclose(high[:, 0], 1 - below, rtol=0, atol=1e-8)


@pytest.mark.parametrize("plan", ["plain", "weight"])
def test_softmax_is_that_of_multinom(plan):
    golden = R["multinom"][plan]
    weight = np.array(SETS["classes"]["times"], float) if plan == "weight" else None
    model = Logistic().fit(*rows_of("classes"), sample_weight=weight)
    np.testing.assert_allclose(against_first(model), golden["coef"], rtol=1e-5)
    told = model.summary().to_dict()
    found = [told["deviance"], told["aic"]]
    np.testing.assert_allclose(found, [golden["deviance"], golden["aic"]], rtol=1e-9)


NETS = [
    (size, kind, at)
    for size, kinds in R["glmnet"].items()
    for kind, answers in kinds.items()
    for at in answers
]


def nets(start):
    chosen = [net for net in NETS if net[1].startswith(start)]
    ids = ["-".join(net) for net in chosen]
    return pytest.mark.parametrize(("size", "kind", "at"), chosen, ids=ids)


def assert_net(model, size, golden):
    """The same slopes of every class, to 1e-6 of the feature's largest: some may be 0."""
    slopes, intercepts = np.array(golden["coef"])[:, 1:], np.array(golden["coef"])[:, 0]
    assert (np.abs(model.coef_ - slopes) <= 1e-6 * np.abs(slopes).max(axis=0)).all()
    apart = intercepts if size == "two" else intercepts[1:] - intercepts[0]
    np.testing.assert_allclose(against_first(model)[:, 0], apart, rtol=1e-6)


@nets("ridge")
def test_ridge_is_that_of_glmnet(size, kind, at):
    golden = R["glmnet"][size][kind][at]
    model = Logistic(ridge=golden["lambda"], standardize=kind.endswith("standardized"))
    model.fit(*rows_of({"two": "two", "three": "classes"}[size]))
    assert_net(model, size, golden)


@pytest.mark.parametrize("size", ["two", "three", "separated_two", "separated_three"])
def test_bias_reduction_is_that_of_brglm2(size):
    golden = R["brglm2"][size]["mean"]
    rows = {"three": "classes", "separated_three": "separated"}.get(size, size)
    model = Logistic(bias_reduction="jeffreys").fit(*rows_of(rows))
    np.testing.assert_allclose(against_first(model), np.atleast_2d(golden["coef"]), rtol=1e-6)


# --- statsmodels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(STATSMODELS))
def test_the_table_of_coefficients_is_that_of_statsmodels(name):
    golden = STATSMODELS[name]
    model = Logistic().fit(*rows_of(name))
    for ours, theirs in (("estimate", "coef"), ("std_error", "se"), ("z", "z"), ("p", "p")):
        np.testing.assert_allclose(column(model, ours), golden[theirs], rtol=1e-8, err_msg=ours)


@pytest.mark.parametrize("name", list(STATSMODELS))
def test_the_likelihood_is_that_of_statsmodels(name):
    golden, told = STATSMODELS[name], Logistic().fit(*rows_of(name)).summary().to_dict()
    found = [told["log_likelihood"], told["aic"], told["bic"], told["pseudo_r2"]["mcfadden"]]
    theirs = [golden[key] for key in ("loglik", "aic", "bic", "mcfadden")]
    np.testing.assert_allclose(found, theirs, rtol=1e-8)


# --- real data ------------------------------------------------------------------------------------


def read(folder, file):
    return json.loads((folder / file).read_text())


def assert_table(model, golden):
    """Estimates to 1e-8 of a standard error, and standard errors to 1e-8."""
    se = numbers(golden["se"])
    assert np.abs((against_first(model)[0] - numbers(golden["coef"])) / se).max() < 1e-8
    np.testing.assert_allclose(column(model, "std_error")[0], se, rtol=1e-8)


def heart_rows(shared_data, terms):
    table = pd.read_csv(shared_data / "esl_saheart" / "SAheart.csv")
    table["famhist"] = (table["famhist"] == "Present").astype(float)
    return table[terms], table["chd"]


HEART = {  # ESL, 2nd edition, tables 4.2 and 4.3: coefficients and standard errors
    "table_4_2": (
        ["sbp", "tobacco", "ldl", "famhist", "obesity", "alcohol", "age"],
        [-4.130, 0.006, 0.080, 0.185, 0.939, -0.035, 0.001, 0.043],
        [0.964, 0.006, 0.026, 0.057, 0.225, 0.029, 0.004, 0.010],
    ),
    "table_4_3": (
        ["tobacco", "ldl", "famhist", "age"],
        [-4.204, 0.081, 0.168, 0.924, 0.044],
        [0.498, 0.026, 0.054, 0.223, 0.010],
    ),
}


@pytest.mark.parametrize("name", list(HEART))
def test_heart_disease_is_as_printed_in_esl(shared_data, name):
    terms, coefficients, errors = HEART[name]
    model = Logistic().fit(*heart_rows(shared_data, terms))
    assert against_first(model)[0].round(3).tolist() == coefficients
    assert column(model, "std_error")[0].round(3).tolist() == errors


def test_heart_disease_is_that_of_exact_arithmetic(shared_data):
    golden = read(shared_data / "esl_saheart", "gold_highprec.json")
    rows = heart_rows(shared_data, golden["table_4_2"]["terms"][1:])
    assert_table(Logistic().fit(*rows), golden["table_4_2"])
    assert_table(Logistic(bias_reduction="jeffreys").fit(*rows), golden["table_4_2_firth"])


@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_other_links_on_heart_disease_are_those_of_glm(shared_data, link):
    golden = read(shared_data / "esl_saheart", "reference.json")[f"{link}_table_4_3_terms"]
    model = Logistic(link).fit(*heart_rows(shared_data, golden["terms"][1:]))
    # R stopped when the deviance stood still, which leaves a link that is not canonical 7 digits.
    np.testing.assert_allclose(against_first(model)[0], golden["coef"], rtol=1e-6)
    assert model.summary().to_dict()["deviance"] == pytest.approx(golden["deviance"], rel=1e-10)


@pytest.mark.parametrize("at", range(5))
def test_ridge_on_heart_disease_is_that_of_glmnet(shared_data, at):
    reference = read(shared_data / "esl_saheart", "reference.json")
    golden = np.array(reference["glmnet_ridge"]["coef"])[:, at]
    terms = reference["all_nine"]["terms"][1:]
    model = Logistic(ridge=reference["glmnet_ridge"]["lambda"][at])
    found = against_first(model.fit(*heart_rows(shared_data, terms)))[0]
    np.testing.assert_allclose(found, golden, rtol=1e-6)


def test_vowels_are_told_apart_as_in_esl(shared_data):
    folder = shared_data / "esl_vowel"
    train, test = (pd.read_csv(folder / f"vowel_{part}.csv") for part in ("train", "test"))
    model = Logistic().fit(train.drop(columns="y"), train["y"])
    errors = [float((model.predict(t.drop(columns="y")) != t["y"]).mean()) for t in (train, test)]
    assert [round(error, 2) for error in errors] == [0.22, 0.51]
    golden = read(folder, "reference.json")["multinomial_logistic"]
    assert model.summary().to_dict()["deviance"] == pytest.approx(golden["deviance"], rel=1e-5)


def test_pima_is_that_of_exact_arithmetic_and_of_ripley(shared_data):
    folder = shared_data / "pima"
    train, test = (pd.read_csv(folder / f"pima_{part}.csv") for part in ("tr", "te"))
    model = Logistic().fit(train.drop(columns="type"), train["type"])
    assert_table(model, read(folder, "gold_highprec.json")["logistic"])
    assert int((model.predict(test.drop(columns="type")) != test["type"]).sum()) == 66


@pytest.mark.parametrize(
    ("answer", "terms"),
    [
        ("glm_balance", ["balance"]),
        ("glm_student", ["student"]),
        ("logistic", ["student", "balance", "income"]),
    ],
)
def test_default_is_that_of_glm(shared_data, answer, terms):
    folder = shared_data / "islr_default"
    table = pd.read_csv(folder / "Default.csv")
    table["student"] = (table["student"] == "Yes").astype(float)
    model = Logistic().fit(table[terms], table["default"])
    assert_table(model, read(folder, "reference.json")[answer])


def test_firth_on_endometrial_cancer_is_that_of_exact_arithmetic(shared_data):
    folder = shared_data / "sep_endometrial"
    table = pd.read_csv(folder / "endometrial.csv")
    model = Logistic(bias_reduction="jeffreys").fit(table[["NV", "PI", "EH"]], table["HG"])
    assert_table(model, read(folder, "gold_highprec.json")["firth"])
    assert against_first(model)[0].round(3).tolist() == [3.775, 2.929, -0.035, -2.604]


def test_firth_of_weighted_rows_is_that_of_brglm2_on_counts(shared_data):
    folder = shared_data / "sep_lizards"
    table = pd.read_csv(folder / "lizards.csv")
    golden = read(folder, "reference.json")["firth_AS_mean"]
    features = pd.DataFrame(
        {
            "high": table["height"] == ">=5ft",
            "wide": table["diameter"] == ">2in",
            "shady": table["light"] == "shady",
            "midday": table["time"] == "midday",
            "late": table["time"] == "late",
        }
    ).astype(float)
    counts = np.concatenate([table["opalinus"], table["grahami"]]).astype(float)
    codes = np.repeat([0, 1], len(table))
    model = Logistic(bias_reduction="jeffreys")
    model.fit(pd.concat([features, features]), codes, sample_weight=counts)
    np.testing.assert_allclose(against_first(model)[0], golden["coef"], rtol=1e-6)
    np.testing.assert_allclose(column(model, "std_error")[0], golden["se"], rtol=1e-6)


def page_rows(shared_data):
    folder = shared_data / "imb_pageblocks0"
    table = pd.read_csv(folder / "pageblocks0.csv")
    return table.drop(columns=["y", "fold"]), table["y"]


def test_page_blocks_where_glm_gives_up_are_those_of_exact_arithmetic(shared_data):
    golden = read(shared_data / "imb_pageblocks0", "gold_highprec.json")
    model = Logistic().fit(*page_rows(shared_data))
    assert model.summary().to_dict()["deviance"] == pytest.approx(1678.131452297576, rel=1e-12)
    np.testing.assert_allclose(
        against_first(model)[0], numbers(golden["coef_original_scale"]), rtol=1e-8
    )


def test_balanced_weights_on_page_blocks_are_those_of_glm(shared_data):
    golden = read(shared_data / "imb_pageblocks0", "reference.json")["logistic_balanced_weights"]
    features, codes = page_rows(shared_data)
    weight = len(codes) / (2 * np.bincount(codes))[codes]
    model = Logistic().fit(features, codes, sample_weight=weight)
    np.testing.assert_allclose(against_first(model)[0], golden["coef"], rtol=1e-6)
