"""Build linear.json and anova.json from the NIST StRD files in raw/.

    python tests/nist/make.py

Nothing here is rounded before the end: the data are read as decimals and solved in fractions. So

    - a slip in raw/ shows: every certified value must come back to 13 digits, or this stops;
    - `attainable` is what exact arithmetic gets from the same data rounded to float64, in digits
      LRE = -log10(|value - certified| / |certified|), between 0 and 15. No float64 reader of the
      data can promise more, though by luck one may show more.

The certified values carry 15 digits, so an LRE of 15 means all of them.
"""

import json
import math
import re
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).parent
LINEAR = ["Norris", "Pontius", "NoInt1", "NoInt2", "Filip", "Longley"]
LINEAR += [f"Wampler{i}" for i in range(1, 6)]
ANOVA = ["SiRstv", "AtmWtAg", *(f"SmLs0{i}" for i in range(1, 10))]


def main():
    write("linear.json", {name: linear_set(name) for name in LINEAR})
    write("anova.json", {name: anova_set(name) for name in ANOVA})


# --- linear regression -------------------------------------------------------------------------


def linear_set(name):
    text = read(name)
    table = rows_after(text, "Data:  .*y +x.*")
    coef, sd = zip(*re.findall(r"^ +B\d+ +(\S+) +(\S+) *$", text, re.M), strict=True)
    regression, residual = (sum_of_squares(text, word) for word in ("Regression", "Residual"))
    intercept = bool(re.search(r"^ +B0 ", text, re.M))
    degree = len(coef) - intercept if len(table[0]) == 2 else 1
    certified = {
        "coef": floats(coef),
        "sd": floats(sd),
        "residual_sd": float(one(r"Standard Deviation +(\S+)\s*$", text)),
        "r2": float(one(r"R-Squared +(\S+)", text)),
        "regression_ss": float(regression),
        "residual_ss": float(residual),
    }
    y, *x = zip(*table, strict=True)
    check_linear(name, x, y, intercept, degree, coef, sd, residual)
    return {
        "x": [floats(row) for row in zip(*x, strict=True)],
        "y": floats(y),
        "intercept": intercept,
        "degree": degree,
        "certified": certified,
        "attainable": {
            "coef_lre": coef_lre(x, y, intercept, degree, coef, power=lambda v, j: v**j),
            "coef_lre_rounded_powers": coef_lre(
                x, y, intercept, degree, coef, power=lambda v, j: rounded(v**j)
            ),
        },
    }


def check_linear(name, x, y, intercept, degree, coef, sd, residual):
    design = design_of(decimals(x), intercept, degree, power=lambda v, j: v**j)
    found, scatter, rss = least_squares(design, [Fraction(v) for v in y])
    noise = rss / (len(y) - len(coef))
    found_sd = [math.sqrt(noise * scatter[j][j]) for j in range(len(coef))]
    pairs = [*zip(found, coef, strict=True), *zip(found_sd, sd, strict=True), (rss, residual)]
    demand(name, min(lre(value, Fraction(sure)) for value, sure in pairs))


def coef_lre(x, y, intercept, degree, coef, *, power):
    """Digits of the exact solution of the float64 data, the powers of x taken by `power`."""
    columns = [[rounded(v) for v in column] for column in decimals(x)]
    design = design_of(columns, intercept, degree, power=power)
    found, _, _ = least_squares(design, [rounded(Fraction(v)) for v in y])
    return min(lre(value, Fraction(sure)) for value, sure in zip(found, coef, strict=True))


def design_of(columns, intercept, degree, *, power):
    ones = [[Fraction(1)] * len(columns[0])] if intercept else []
    return ones + [
        [power(v, j) for v in column] for column in columns for j in range(1, degree + 1)
    ]


def least_squares(design, y):
    """Coefficients, inverse cross products and residual sum of squares, in fractions."""
    size = len(design)
    system = [
        [dot(a, b) for b in design] + [Fraction(i == j) for j in range(size)] + [dot(a, y)]
        for i, a in enumerate(design)
    ]
    for i in range(size):
        pivot = system[i][i]  # positive: cross products of independent columns
        system[i] = [v / pivot for v in system[i]]
        for k in range(size):
            if k != i:
                factor = system[k][i]
                system[k] = [v - factor * w for v, w in zip(system[k], system[i], strict=True)]
    coef = [row[-1] for row in system]
    rss = dot(y, y) - sum(c * dot(column, y) for c, column in zip(coef, design, strict=True))
    return coef, [row[size:-1] for row in system], rss


# --- one-way analysis of variance --------------------------------------------------------------


def anova_set(name):
    text = read(name)
    table = rows_after(text, r" *1 +2( .*)?")
    replicates = int(one(r"(\d+) +Replicates/Cell", text))
    between, within = (sum_of_squares(text, word) for word in ("Between", "Within"))
    first, *rest = table
    rows = [first, *rest * ((replicates - 1) // len(rest))]
    groups = list(zip(*rows, strict=True))
    found = sums_of_squares([[Fraction(v) for v in group] for group in groups])
    demand(name, min(lre(found[0], Fraction(between)), lre(found[1], Fraction(within))))
    float_found = sums_of_squares([[rounded(Fraction(v)) for v in group] for group in groups])
    return {
        **stored(name, table, groups, replicates),
        "certified": {
            "between_ss": float(between),
            "within_ss": float(within),
            "between_df": len(groups) - 1,
            "within_df": len(groups) * (replicates - 1),
            "f": float(one(r"Between .* (\S+)$", text)),
            "r2": float(one(r"R-Squared +(\S+)", text)),
            "residual_sd": float(one(r"Standard Deviation +(\S+)", text)),
        },
        "attainable": {
            "between_lre": lre(float_found[0], Fraction(between)),
            "within_lre": lre(float_found[1], Fraction(within)),
        },
    }


def stored(name, table, groups, replicates):
    """The groups, or for SmLs (up to 18,009 numbers) the first row and the two that alternate."""
    if not name.startswith("SmLs"):
        return {"groups": [floats(group) for group in groups]}
    first, *then = map(floats, table)
    return {"pattern": {"first": first, "then": then, "replicates": replicates}}


def sums_of_squares(groups):
    """Between and within."""
    means = [sum(group) / len(group) for group in groups]
    grand = sum(map(sum, groups)) / sum(map(len, groups))
    between = sum(len(g) * (m - grand) ** 2 for g, m in zip(groups, means, strict=True))
    within = sum((v - m) ** 2 for g, m in zip(groups, means, strict=True) for v in g)
    return between, within


# --- reading, counting digits, writing ---------------------------------------------------------


def read(name):
    return (HERE / "raw" / f"{name}.dat").read_text()


def rows_after(text, heading):
    """The numbers below the last line that matches, as they are written."""
    *_, last = re.finditer(f"^{heading}$", text, re.M)
    body = text[last.end() :]
    return [line.split() for line in body.splitlines() if line.strip()]


def one(pattern, text):
    return re.search(pattern, text, re.M).group(1)


def sum_of_squares(text, word):
    return one(rf"^{word}[A-Za-z ]* +\d+ +(\S+) ", text)


def floats(words):
    return [float(word) for word in words]


def decimals(columns):
    return [[Fraction(word) for word in column] for column in columns]


def rounded(value):
    return Fraction(float(value))


def dot(a, b):
    return sum(v * w for v, w in zip(a, b, strict=True))


def lre(value, certified):
    if value == certified:
        return 15.0
    if certified == 0:
        return 0.0
    error = abs(Fraction(value) - certified) / abs(certified)
    return round(min(max(-math.log10(error), 0.0), 15.0), 2)


def demand(name, digits):
    if digits < 13:
        raise SystemExit(f"{name}: raw/ gives back only {digits} certified digits; read it again.")
    print(f"{name}: {digits} digits")


def write(name, sets):
    """One line to each field, so that a change can be read."""
    body = ",\n".join(
        f' "{key}": {{\n'
        + ",\n".join(f'  "{field}": {json.dumps(value)}' for field, value in fields.items())
        + "\n }"
        for key, fields in sets.items()
    )
    (HERE / name).write_text(f"{{\n{body}\n}}\n")


if __name__ == "__main__":
    main()
