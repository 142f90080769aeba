"""The decisions about apps, which publish versions, for all engines: plain functions over values.

Rules
- An app belongs to the queues that it writes. Several apps may have the same name if they write different queues.
- A publication matches the apps of its name that wrote one of its queues, whichever key they used, and the apps of
  its name that its own key made, whichever queues they wrote. Publishing merges all of them into one app.
- It is refused if an app that wrote one of its queues also wrote a queue that the key may not write. So a key that
  may not write all queues of an app can neither use up its versions nor block it. It is also refused if another key
  published this version to only some of its queues: it can neither be published again nor count as published.
- Each publication forgets at most one app whose time is over. When a key, or all keys together, have as many apps as
  they may, an app that published for one job is forgotten early; any other app keeps its full time.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from forq_trio.model import limits
from forq_trio.model.access.types import UNKNOWN, Key
from forq_trio.model.commands import Publish
from forq_trio.model.errors import AppInUse, TooManyApps
from forq_trio.model.publishing.types import KeyShare, PublishedVersion, Staging

NO_SHARE = KeyShare()
_WILDCARDS = frozenset("*?[")


class Full(Enum):
    """Which bound on apps is reached: the key's, or that of all keys together."""

    KEY = "key"
    ALL = "all"


def matching_apps(known: Mapping[int, PublishedVersion], command: Publish) -> Sequence[int] | AppInUse:
    """The numbers of the apps that a publication matches; none for a new app. known: the apps of its name."""
    key, queues = command.key, {stage.queue for stage in command.stages}
    matching = []
    for number, app in known.items():
        written = [queue for queue in queues if _wrote(app, key, queue)]
        if written and not key.covers_all(app.queues):
            return AppInUse()
        is_own = app.made_by == key.name and key.covers_all(app.queues)
        if written and app.version >= command.version and not is_own and len(written) < len(queues):
            return AppInUse()
        if written or is_own:
            matching.append(number)
    return matching


def _wrote(app: PublishedVersion, key: Key, queue: str) -> bool:
    """Whether an app wrote this queue. If only a glob is stored for it, that counts if the key covers the glob."""
    return queue in app.queues or any(
        key.covers(each) and Key(queues=each).covers(queue) for each in app.queues if _is_glob(each)
    )


def _is_glob(queue: str) -> bool:
    return not _WILDCARDS.isdisjoint(queue)


def app_after(matching: Sequence[PublishedVersion], command: Publish, now_ms: int) -> PublishedVersion:
    """The app after this publication: its own queues first, then those of all matching apps."""
    written = [stage.queue for stage in command.stages]
    before = [queue for app in matching for queue in app.queues if not _is_glob(queue)]
    queues = tuple(dict.fromkeys([*written, *before]))[: limits.APP_QUEUES_MAX]
    return PublishedVersion(command.app, command.version, now_ms, command.once, command.key.name, queues)


def full_of_apps(staging: Staging, matching: Sequence[PublishedVersion], key: Key) -> Full | None:
    """Which bound leaves no space for one more app; None if there is space. The new app replaces the matching ones."""
    own = sum([app.made_by == key.name for app in matching])
    if share_of(staging, key.name).apps - own >= limits.APPS_A_KEY_MAX:
        return Full.KEY
    return Full.ALL if staging.apps - len(matching) >= limits.APPS_MAX else None


def refused(full: Full) -> TooManyApps:
    """The error when a bound on apps is reached."""
    if full is Full.ALL:
        return TooManyApps()
    return TooManyApps(
        f"this key has published as {limits.APPS_A_KEY_MAX:,} apps, as many as one may: delete some of them"
    )


def is_forgettable(published_at: int, now_ms: int, *, once: bool, full: bool) -> bool:
    """Whether an app may be forgotten. once: it published for one job; full: a new one needs the space."""
    life_ms = limits.APP_ONCE_LIFE_MS if once else limits.APP_LIFE_MS
    return (full and once) or published_at + life_ms <= now_ms


def share_of(staging: Staging, name: str) -> KeyShare:
    """How many stages, staged bytes and apps a key has."""
    return staging.shares.get(name, NO_SHARE)


def shares_of_all(
    stages: Iterable[tuple[str, int, int]], apps: Iterable[tuple[str, int]]
) -> dict[str, KeyShare]:
    """Add up the share of each key. stages: rows of key, stages, bytes. apps: rows of key, apps."""
    shares: dict[str, KeyShare] = {}
    for name, waiting, size in stages:
        _add(shares, name, stages=waiting, size=size)
    for name, count in apps:
        _add(shares, name, apps=count)
    return shares


def shares_with(
    shares: Mapping[str, KeyShare], name: str, *, stages: int = 0, size: int = 0, apps: int = 0
) -> Mapping[str, KeyShare]:
    """The shares after adding to those of one key; negative numbers take away."""
    after = dict(shares)
    _add(after, name, stages=stages, size=size, apps=apps)
    return after


def _add(shares: dict[str, KeyShare], name: str, *, stages: int = 0, size: int = 0, apps: int = 0) -> None:
    """Add to the share of a key. What an unknown key made counts in no share."""
    had = shares.get(name, NO_SHARE)
    share = KeyShare(had.stages + stages, had.bytes + size, had.apps + apps)
    if share == NO_SHARE:
        shares.pop(name, None)
    elif name != UNKNOWN:
        shares[name] = share
