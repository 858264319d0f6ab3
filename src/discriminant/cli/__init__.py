"""Command line interface: `discriminant report loans.csv --target default` and other commands.

This module and `commands` import only the modules that `--help` needs; numerical libraries are
loaded when a command runs.

    exit code   0 success   1 a bug in this package   2 invalid input
                3 the selected model did not converge
                130 stopped by Ctrl-C   143 by SIGTERM   129 by a closed terminal
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code."""
    # modules and tables live to the end: fewer searches for garbage make imports 10% faster
    gc.set_threshold(50_000, 20, 20)
    from discriminant.cli.run import raise_on_signals, run, run_supervised
    from discriminant.engines.available_memory import memory_limit

    arguments = list(sys.argv[1:] if args is None else args)
    limit = memory_limit()
    if limit is not None and arguments and not {"--help", "--version"} & set(arguments):
        sys.exit(run_supervised(arguments, limit))
    raise_on_signals()
    sys.exit(run(arguments))
