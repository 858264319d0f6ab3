"""Peers with BLAS as it comes and with BLAS limited to one thread; the faster of the two counts.

Two BLAS threads that share cores with other work wait for each other, and a call can take ten times
as long. Without this, a stalled peer would flatter us.
"""

from __future__ import annotations

from threadpoolctl import ThreadpoolController

_BLAS = ThreadpoolController()


def either(contenders):
    """Return every contender twice: on all cores, and on one."""
    both = {}
    for name, call in contenders.items():
        both[name] = call
        both[f"{name}, one thread"] = single_threaded(call)
    return both


def single_threaded(call):
    """Return the call with BLAS limited to one thread."""

    def limited():
        with _BLAS.limit(limits=1):
            return call()

    return limited
