"""The command line: `discriminant report loans.csv --target default`, and the rest.

Only what `--help` needs is imported here and in `commands`; numbers come in when a command runs.

    exit code   0 done   1 a mistake of ours   2 the input cannot be used
                3 the model taken had not converged
                130 stopped by Ctrl-C   143 by SIGTERM   129 by a closed terminal
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> None:
    """Run a command and leave with its code."""
    from discriminant.cli.session import run, run_in_limit, stop_tidily
    from discriminant.engines.memory_limit import memory_limit

    given = list(sys.argv[1:] if args is None else args)
    limit = memory_limit()
    if limit is not None and given and not {"--help", "--version"} & set(given):
        sys.exit(run_in_limit(given, limit))
    stop_tidily()
    sys.exit(run(given))
