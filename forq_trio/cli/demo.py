"""`forq demo`: a server with a shop behind it."""

import click

from forq_trio.cli.output import echo


@click.command()
@click.option("--no-browser", is_flag=True, help="Open no browser: the link to the admin UI is printed.")
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="Seed for the random numbers: the same seed makes the same orders.",
)
def demo(no_browser: bool, seed: int) -> int:
    """Run a server with a small shop behind it, to look at. Ctrl-C ends it, and nothing stays.

    The admin UI opens in a browser, by a link that logs in once. The database is a temporary one.

    \f
    It prints the link, the URL of the API, and what another terminal needs to send a message. Over SSH, and where there
    is no screen, it opens no browser.

    ![The admin UI of the demo: eight queues, what waits, and which needs attention](docs/images/demo.png)
    """
    from forq_trio.demo.run import run

    return run(seed, browser=not no_browser, tell=echo)
