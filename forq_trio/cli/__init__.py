"""The command `forq`: `commands` has the list of all commands, each is in a module of its own.

This module imports nothing before `main` runs, so that Ctrl-C ends it quietly from then on.
"""


def main() -> None:
    """The console script."""
    import sys

    from forq_trio.cli.streams import drop_unwritten, open_missing_streams

    try:
        open_missing_streams()
        from forq_trio.cli.commands import run

        code = run()
    except KeyboardInterrupt:
        code = 130
    drop_unwritten()
    sys.exit(code)
