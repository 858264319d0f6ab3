"""So that `python -m discriminant.cli` is the command line as well."""

from discriminant.cli import main

main()
