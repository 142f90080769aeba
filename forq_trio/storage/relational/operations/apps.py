"""Apps, and the last versions that they published; storage/apps.py has the rules."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from forq_trio.model.access.types import Key
from forq_trio.model.commands import ForgetApp, Publish
from forq_trio.model.errors import ForqError
from forq_trio.model.publishing.types import PublishedVersion
from forq_trio.storage import apps as rules
from forq_trio.storage.apps import Full, shares_with
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.transaction import Transaction

_encode = msgspec.json.Encoder().encode
_read_queues = msgspec.json.Decoder(tuple[str, ...]).decode

Apps = Mapping[int, PublishedVersion]
"""Apps by number."""


def read_app(row: Any) -> tuple[int, PublishedVersion]:
    """Number and app of a row."""
    number, app, version, published_at, once, made_by, queues = row
    return number, PublishedVersion(app, version, published_at, bool(once), made_by, _read_queues(queues))


def matching_apps(tx: Transaction, command: Publish) -> Apps | ForqError:
    """The apps that a publication matches, or the error with which it is refused."""
    known = dict(map(read_app, tx.query("find_apps", command.app)))
    matching = rules.matching_apps(known, command)
    if isinstance(matching, ForqError):
        return matching
    apps = {number: known[number] for number in matching}
    full = rules.full_of_apps(tx.staging.totals, list(apps.values()), command.key)
    if full is not None and _to_forget(tx, command.key, full) is None and not _is_there(apps, command):
        return rules.refused(full)
    return apps


def _is_there(apps: Apps, command: Publish) -> bool:
    return any(app.version >= command.version for app in apps.values())


def note_version(tx: Transaction, command: Publish, matching: Apps) -> None:
    """Note that an app published a version. It replaces the matching apps, and one more if there are too many."""
    for number, app in matching.items():
        _forget(tx, number, app.made_by)
    forgotten = _to_forget(tx, command.key, rules.full_of_apps(tx.staging.totals, (), command.key))
    if forgotten is not None:
        _forget(tx, *forgotten)
    after = rules.app_after(list(matching.values()), command, tx.now_ms)
    queues = _encode(after.queues).decode()
    tx.query("save_app", after.app, after.version, after.published_at, after.once, after.made_by, queues)
    shares = shares_with(tx.staging.totals.shares, after.made_by, apps=1)
    tx.staging.totals = replace(tx.staging.totals, apps=tx.staging.totals.apps + 1, shares=shares)


def _to_forget(tx: Transaction, key: Key, full: Full | None) -> tuple[int, str] | None:
    """Number and key of the app to forget next, None for none. full: a new one needs the space."""
    for once in (True, False):
        candidates = [] if full is None else tx.query("oldest_app_of", key.name, once)
        if full is None:
            candidates += _oldest(tx, once)
        elif full is not Full.KEY:
            candidates += tx.query("oldest_app", once)
        for number, published_at, made_by in candidates:
            if rules.is_forgettable(published_at, tx.now_ms, once=once, full=full is not None):
                return number, made_by
    return None


def _oldest(tx: Transaction, once: bool) -> list[Any]:
    """The app that published longest ago. once: for one job, or not. Those that this batch adds are too new."""
    if once not in tx.lookups.oldest_apps:
        tx.lookups.oldest_apps[once] = tx.query("oldest_app", once)
    return tx.lookups.oldest_apps[once]


def _forget(tx: Transaction, number: int, made_by: str) -> None:
    tx.query("forget_app", number)
    tx.lookups.oldest_apps.clear()
    shares = shares_with(tx.staging.totals.shares, made_by, apps=-1)
    tx.staging.totals = replace(tx.staging.totals, apps=tx.staging.totals.apps - 1, shares=shares)


@operation_on_each(ForgetApp, changes=lambda _, command: [command.app])
def forget(tx: Transaction, command: ForgetApp) -> bool:
    known = map(read_app, tx.query("find_apps", command.app))
    forgotten = [(number, app) for number, app in known if command.key.covers_all(app.queues)]
    for number, app in forgotten:
        _forget(tx, number, app.made_by)
    return bool(forgotten)
