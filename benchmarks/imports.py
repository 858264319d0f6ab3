"""Imports and the help of the command line, each in a new interpreter."""

from __future__ import annotations

import subprocess
import sys

from contest import OURS, Case, Contest, Goal


def start(name, statement, job=None):
    return Case(
        name,
        job or statement,
        "a new interpreter",
        _contest(statement),
        (Goal("import sklearn.linear_model", at_least=1.0), Goal("python -c pass")),
        memory=False,
    )


def _contest(statement):
    peers = {"import sklearn.linear_model": "import sklearn.linear_model", "python -c pass": "pass"}

    def prepare(share):
        contenders = {
            name: lambda code=code: subprocess.run(
                [sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL
            )
            for name, code in {OURS: statement, **peers}.items()
        }
        return Contest(contenders, lambda result: [], 0)

    return prepare
