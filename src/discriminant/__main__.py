"""So that `python -m discriminant` is the command line."""

from discriminant.cli import main

main()
