"""Intervals of a rate by statsmodels.stats.proportion -> intervals_statsmodels.json

    python tests/golden/make_intervals.py tests/golden/intervals_statsmodels.json

Counts need not be whole here, as those of weighted rows are not.
"""

import json
import sys
from pathlib import Path

import statsmodels
from statsmodels.stats.proportion import proportion_confint

COUNTS = [(0, 7), (2.5, 7.5), (7.25, 10.75), (99.5, 99.75), (81, 104), (1e5 / 3, 1e5)]
LEVELS = [0.9, 0.95, 0.99]


def main(target):
    pairs = [(x, n, level) for x, n in COUNTS for level in LEVELS]
    answer = {
        "versions": {"statsmodels": statsmodels.__version__},
        "x": [x for x, _, _ in pairs],
        "n": [n for _, n, _ in pairs],
        "level": [level for *_, level in pairs],
    }
    for ours, theirs in (("wilson", "wilson"), ("exact", "beta")):
        answer[ours] = [
            [float(end) for end in proportion_confint(x, n, alpha=1 - level, method=theirs)]
            for x, n, level in pairs
        ]
    target.write_text(json.dumps(answer, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
