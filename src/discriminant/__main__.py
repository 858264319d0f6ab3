"""Run the command line with `python -m discriminant`."""

from discriminant.cli import main

main()
