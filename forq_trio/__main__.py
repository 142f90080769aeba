"""`python -m forq_trio` is the same as `forq`."""

from forq_trio.cli import main

main()
