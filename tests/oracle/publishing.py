"""The reference engine: stages and publications."""

from functools import partial

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.access.types import Key
from forq_trio.model.commands import DiscardStage, EndStages, ForgetApp, Publish, StagePage
from forq_trio.model.errors import AppInUse
from forq_trio.model.publishing.types import Published, PublishedVersion, Staged, Staging
from forq_trio.storage import apps as rules
from forq_trio.storage.apps import Full
from forq_trio.storage.publishing import admitted, check_space, check_staging, missing, read_part, repeated
from forq_trio.storage.rules import Space
from oracle.operations import operation
from oracle.send import store
from oracle.stages import StoredStage, staging_of
from oracle.transaction import Transaction


def staging(tx: Transaction) -> Staging:
    return staging_of(tx.state.stages, tx.state.last_entry, tx.state.apps.values())


def _find(tx: Transaction, queue: str, name: str) -> int | None:
    stages = tx.state.stages.items()
    return next((number for number, stage in stages if (stage.queue, stage.name) == (queue, name)), None)


@operation(StagePage)
def stage_page(tx: Transaction, command: StagePage) -> Staged:
    number = _find(tx, command.queue, command.stage)
    if number is not None:
        there = [part for page, _, part in tx.state.stages[number].parts if page == command.page]
        if there:
            return Staged(sum(part.messages for part in there), sum(part.bytes for part in there))
    made_by = command.key.name if number is None else tx.state.stages[number].made_by
    if number is None:
        _end_empty_stage(tx, made_by)
    refusal = check_staging(staging(tx), command, made_by, is_new=number is None)
    if refusal is not None:
        raise refusal
    if number is None:
        number = tx.state.stages_begun = tx.state.stages_begun + 1
        stage = StoredStage(command.queue, command.stage, (), 0, made_by=made_by)
    else:
        stage = tx.state.stages[number]
    parts = [*stage.parts, *((command.page, index, part) for index, part in enumerate(command.parts))]
    parts.sort(key=lambda part: part[:2])
    expires_at = tx.now_ms + limits.STAGE_LIFE_MS
    tx.state.stages[number] = replace(stage, parts=tuple(parts), expires_at=expires_at)
    return Staged(sum(part.messages for part in command.parts), sum(part.bytes for part in command.parts))


def _end_empty_stage(tx: Transaction, made_by: str) -> None:
    """End the oldest empty stage of a key that has as many as it may."""
    waiting = {
        number: stage
        for number, stage in tx.state.stages.items()
        if stage.made_by == made_by and stage.name is not None
    }
    empty = [number for number, stage in waiting.items() if stage.space.messages == 0]
    if len(waiting) >= limits.STAGES_A_KEY_MAX and empty:
        _queue_stage(tx, min(empty), published=False)


@operation(Publish)
def publish(tx: Transaction, command: Publish) -> Published:
    matching = _matching_apps(tx, command)
    if any(app.version >= command.version for app in matching.values()):
        return Published(False, 0, tx.state.last_entry)
    full = rules.full_of_apps(staging(tx), list(matching.values()), command.key)
    if full is not None and _to_forget(tx, command.key, full) is None:
        raise rules.refused(full)
    twice = repeated(command.stages)
    if twice is not None:
        raise missing(twice, 0)
    numbers = []
    for stage in command.stages:
        number = _find(tx, stage.queue, stage.stage)
        pages = [] if number is None else tx.state.stages[number].pages
        if number is None or pages != list(range(stage.pages)):
            raise missing(stage, len(pages))
        numbers.append(number)
    messages = 0
    for queue in dict.fromkeys(stage.queue for stage in command.stages):
        spaces = [
            tx.state.stages[number].space for number in numbers if tx.state.stages[number].queue == queue
        ]
        new = Space(sum(space.messages for space in spaces), sum(space.bytes for space in spaces))
        messages += new.messages
        _check_queue(tx, queue, new)
    for number in numbers:
        _queue_stage(tx, number, published=True)
    for number in matching:
        del tx.state.apps[number]
    forgotten = _to_forget(tx, command.key, rules.full_of_apps(staging(tx), (), command.key))
    if forgotten is not None:
        del tx.state.apps[forgotten]
    number = max(tx.state.apps, default=0) + 1
    tx.state.apps[number] = rules.app_after(list(matching.values()), command, tx.now_ms)
    return Published(True, messages, tx.state.last_entry)


def _matching_apps(tx: Transaction, command: Publish) -> dict[int, PublishedVersion]:
    known = {number: app for number, app in tx.state.apps.items() if app.app == command.app}
    matching = rules.matching_apps(known, command)
    if isinstance(matching, AppInUse):
        raise matching
    return {number: known[number] for number in matching}


def _to_forget(tx: Transaction, key: Key, full: Full | None) -> int | None:
    """The app to forget next, None for none. full: a new one needs the space."""
    for once in (True, False):
        of_kind = [number for number, app in tx.state.apps.items() if app.once == once]
        own = [number for number in of_kind if tx.state.apps[number].made_by == key.name]
        for number in (*own[: full is not None], *of_kind[: full is not Full.KEY]):
            published_at = tx.state.apps[number].published_at
            if rules.is_forgettable(published_at, tx.now_ms, once=once, full=full is not None):
                return number
    return None


@operation(ForgetApp)
def forget_app(tx: Transaction, command: ForgetApp) -> bool:
    forgotten = [
        number
        for number, app in tx.state.apps.items()
        if app.app == command.app and command.key.covers_all(app.queues)
    ]
    for number in forgotten:
        del tx.state.apps[number]
    return bool(forgotten)


def _check_queue(tx: Transaction, queue: str, new: Space) -> None:
    tx.check_admitted(queue)
    moving = [stage.space for stage in tx.state.stages.values() if stage.published and stage.queue == queue]
    on_the_way = Space(sum(space.messages for space in moving), sum(space.bytes for space in moving))
    refusal = check_space(tx.state.counts(queue), on_the_way, new, tx.rules(queue))
    if refusal is not None:
        raise refusal


def _queue_stage(tx: Transaction, number: int, *, published: bool) -> None:
    """Number a stage after all others."""
    entry = tx.state.last_entry = tx.state.last_entry + 1
    tx.state.stages[number] = replace(tx.state.stages[number], name=None, entry=entry, published=published)


@operation(DiscardStage)
def discard(tx: Transaction, command: DiscardStage) -> bool:
    number = _find(tx, command.queue, command.stage)
    if number is not None:
        _queue_stage(tx, number, published=False)
    return number is not None


@operation(EndStages)
def end_stages(tx: Transaction, command: EndStages) -> int:
    stages = [
        (stage.expires_at, number) for number, stage in tx.state.stages.items() if stage.name is not None
    ]
    ended = sorted(each for each in stages if each[0] <= tx.now_ms)
    for _, number in ended:
        _queue_stage(tx, number, published=False)
    return len(ended)


def advance(tx: Transaction) -> None:
    """Move published stages into their queues, and remove those that ended."""
    numbered = [(number, stage) for number, stage in tx.state.stages.items() if stage.entry is not None]
    numbered.sort(key=lambda each: (not each[1].published, each[1].entry))
    for number, stage in numbered:
        for _, _, part in stage.parts if stage.published else ():
            tx.make_known(stage.queue)
            for message in admitted(read_part(part.body), partial(tx.name, made_by=stage.made_by)):
                store(tx, stage.queue, message)
        del tx.state.stages[number]
