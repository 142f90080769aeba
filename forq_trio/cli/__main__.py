"""`python -m forq_trio.cli` is the same as `forq`."""

from forq_trio.cli import main

main()
