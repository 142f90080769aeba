"""The command `forq`: `commands` has the list of all commands, each is in a module of its own.

This module imports nothing before `main` runs, so that Ctrl-C ends it quietly from then on.
"""

COMPLETION_VARIABLE = "_FORQ_COMPLETE"
"""Set by the script of `forq completion` where it asks for completions; click derives it from the command's name."""


def main() -> None:
    """The console script."""
    import os
    import sys

    from forq_trio.cli.streams import drop_unwritten, open_missing_streams
    from forq_trio.model.extras import (
        OF_COMMANDS,
        OF_SERVERS,
        ExtraMissing,
        SystemUnsupported,
        check_system,
        needing,
    )

    name = " ".join(sys.argv[1:2])
    try:
        open_missing_streams()
        if name in OF_SERVERS:
            check_system(f"forq {name}")
        with needing(OF_COMMANDS.get(name, "cli"), f"forq {name}".strip()):
            from forq_trio.cli.commands import run

            code = run()
    except (ExtraMissing, SystemUnsupported) as missing:
        code = 2
        if name == "--version":  # whoever asks for help is asked for it, whatever is installed
            from forq_trio.model.version import version_line

            print(version_line())
            code = 0
        elif COMPLETION_VARIABLE not in os.environ:  # a shell that completes a line has no use for the advice
            print(f"forq: {missing}", file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
    drop_unwritten()
    sys.exit(code)
