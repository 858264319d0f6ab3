"""Run the command line with `python -m discriminant.cli`."""

from discriminant.cli import main

main()
