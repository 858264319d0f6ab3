"""One measurement in an interpreter of its own: `worker.py race CASE SHARE`, or
`worker.py peak CASE SHARE CONTENDER`. The last line it prints is the result, as JSON; the lines
before are the progress of a race (`contest.announce`).
"""

from __future__ import annotations

import json
import sys
import warnings

from cases import CASES
from contest import Announcements, race
from memory import bound_memory, peak_beyond
from rows import gaussian_rows


def main(verb, name, share, contender=""):
    bound_memory()
    Announcements.on = True
    warnings.simplefilter("ignore")
    case = next(case for case in CASES if case.name == name)
    contest = case.prepare(float(share))
    if verb == "peak":
        _warm()
        print(json.dumps({"megabytes": peak_beyond(contest.contenders[contender])}))
        return
    if contest.run is None:
        best, apart = race(contest)
        found = {"best": best, "apart": apart}
    else:
        found = contest.run()
    print(json.dumps({**found, "bytes": contest.bytes}))


def _warm():
    """What is loaded once and stays, such as the threads of BLAS, is not the call's memory."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    import discriminant

    X, y = gaussian_rows(40_000, 4, 2)
    X.T @ X
    discriminant.LDA().fit(X, y).predict_proba(X[:10])
    LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).predict_proba(X[:10])


if __name__ == "__main__":
    main(*sys.argv[1:])
