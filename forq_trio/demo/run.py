"""Starts and ends the demo: one process, one folder that goes with it, free ports of this machine alone.

Signals: while the server runs it obeys them, as `forq serve` does, and whatever comes after the first one is given on
when it has ended. Before and after, the first one raises KeyboardInterrupt and all others are ignored, so that nothing
keeps the folder from being removed. After `kill -9` the next demo removes it.
"""

import os
import secrets
import shlex
import signal
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import trio

from forq_trio import app
from forq_trio.broker.broker import Broker
from forq_trio.config.load import load
from forq_trio.config.settings import Config
from forq_trio.demo.shop import fill, open_shop
from forq_trio.model import limits
from forq_trio.storage.sqlite.files.temporary import temporary_database
from forq_trio.ui.one_time_link import OneTimeLink

KEY_BYTES = 16
LOG_MIB_MAX = "16"
"""Of the history, and of the events: /dev/shm of a container has 64 MiB."""
Tell = Callable[[str], None]

_ENDED = "Ended. Everything is removed."


def run(seed: int, *, browser: bool, tell: Tell) -> int:
    """Run the demo until a signal; returns 0. Raises KeyboardInterrupt if a second one came.

    browser: whether the admin UI is opened in one, if there is one on this screen. tell: prints a line.
    """
    for number in app.stop_signals():
        signal.signal(number, _interrupt)
    try:
        with temporary_database() as database:
            try:
                _serve(Path(database), seed, browser and has_screen(os.environ), tell)
            finally:
                _ignore_signals()
    except KeyboardInterrupt:
        tell(_ENDED)
        raise
    tell(_ENDED)
    return 0


def _ignore_signals() -> None:
    for number in app.stop_signals():
        signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _ignore_signals()
    raise KeyboardInterrupt


def _serve(database: Path, seed: int, browser: bool, tell: Tell) -> None:
    trio.run(fill, f"sqlite:///{database}", seed)
    key = secrets.token_hex(KEY_BYTES)
    link = OneTimeLink()

    def listening(url: str, ui_url: str | None) -> None:
        assert ui_url is not None
        commands = database.with_name("env")
        _write_commands(commands, url, key)
        tell(_words(link.url(ui_url), _opening(ui_url, browser=browser), url, key, commands))
        if browser:  # in a thread, because some browsers are waited for
            threading.Thread(target=webbrowser.open, args=(link.url(ui_url),), daemon=True).start()

    @asynccontextmanager
    async def shop(broker: Broker) -> AsyncIterator[None]:
        async with open_shop(broker, seed):
            yield
            tell("\nEnding: what runs is finished.")

    app.run(_config(database, key), listening, link=link, beside=shop)


def _config(database: Path, key: str) -> Config:
    """The settings: what there is to see is on. Nothing has to survive, so nothing waits for the disk.

    127.0.0.1 and not localhost, because a browser has one jar of cookies for all ports of a name: the session of
    another server on this machine stays.
    """
    options = {
        "auth_secret": key,
        "metrics_enabled": "true",
        "metrics_auth_secret": key,
        "env": "local",
        "api_addr": "127.0.0.1:0",
        "ui_addr": "127.0.0.1:0",
        "db_path": str(database),
        "durability": "normal",
        "disk_reserve_mb": "0",
        "history": "on",
        "history_max_mib": LOG_MIB_MAX,
        "events": "on",
        "events_max_mib": LOG_MIB_MAX,
        "log_level": "error",  # the failures of the shop are no news
    }
    return load(options, environ={}).config


def has_screen(environ: Mapping[str, str]) -> bool:
    """Whether a browser that this process starts can be seen by whoever started it."""
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return False
    return sys.platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def _write_commands(file: Path, url: str, key: str) -> None:
    """Write what a shell has to know, so that commands find this demo and the same `forq`."""
    file.touch(mode=0o600)
    programs = shlex.quote(str(Path(sys.executable).parent))
    file.write_text(
        f"# For commands that talk to the demo. It goes when the demo ends.\n"
        f'export FORQ_URL={url} FORQ_AUTH_SECRET={key} PATH={programs}:"$PATH"\n',
        encoding="utf-8",
    )


def _opening(ui_url: str, *, browser: bool) -> str:
    """How the link is opened."""
    if browser:
        return "It opens in your browser."
    if os.environ.get("SSH_CONNECTION"):
        port = urlsplit(ui_url).port
        return f"First, on your own machine: ssh -L {port}:127.0.0.1:{port} HOST"
    return "Open it in a browser."


def _words(link: str, opening: str, url: str, key: str, commands: Path) -> str:
    """What the terminal shows, in 80 columns."""
    minutes = round(limits.LINK_SECONDS_MAX / 60)
    return f"""\
A small shop is open: eight queues, two workers, three schedules, dead letters.

  Admin UI  {link}
            {opening}
            The link logs in once, within {minutes} minutes.
  API       {url}
  Metrics   {url}/metrics
  Secret    {key}
  Files     {commands.parent}

In another terminal:

  . {commands}
  forq send hello 'It works'
  curl -H "X-API-Key: $FORQ_AUTH_SECRET" -d '{{"content": "hello"}}' \\
    "$FORQ_URL/api/v1/queues/hello/messages"
  forq receive hello --ack
  forq queues

Ctrl-C ends the demo and removes everything."""
