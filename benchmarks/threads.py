"""Peers with BLAS as it comes and with BLAS held to one thread; the faster of the two counts.

Two BLAS threads that share cores with other work wait for each other, and a call can take ten times
as long. A peer that is merely stalled so would flatter us.
"""

from __future__ import annotations

from threadpoolctl import ThreadpoolController

_BLAS = ThreadpoolController()


def either(ways):
    """Every way twice: on all cores, and on one."""
    both = {}
    for name, run in ways.items():
        both[name] = run
        both[f"{name}, one thread"] = alone(run)
    return both


def alone(run):
    """The call with BLAS held to one thread."""

    def held():
        with _BLAS.limit(limits=1):
            return run()

    return held
