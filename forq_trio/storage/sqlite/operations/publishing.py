"""Stages and publications.

A publication only gives its stages their turns; `advance` moves their messages into the queues, so many in each batch,
and removes stages that have ended. A part is read, stored and deleted in one transaction.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import DiscardStage, EndStages, Publish, StagePage
from forq_trio.model.errors import ServiceError, StageMissing, TooManyApps
from forq_trio.model.publishing import Published, Staged
from forq_trio.storage.allowance import Step as Allowed
from forq_trio.storage.engine import DEFERRED, Deferred, SetAside
from forq_trio.storage.publishing import (
    Step,
    admitted,
    check_space,
    check_staging,
    is_forgettable,
    missing,
    read_part,
    repeated,
    stored_bytes,
)
from forq_trio.storage.rules import Space
from forq_trio.storage.sqlite.operations.send import store
from forq_trio.storage.sqlite.transaction import Transaction

_encode = msgspec.json.Encoder().encode


def stage_page(tx: Transaction, commands: Sequence[StagePage]) -> list[Staged | ServiceError]:
    return [_stage_page(tx, command) for command in commands]


def _stage_page(tx: Transaction, command: StagePage) -> Staged | ServiceError:
    found = tx.query("find_stage", command.queue, command.stage)
    if found:
        parts, messages, size = tx.query("find_staged_page", found[0][0], command.page)[0]
        if parts:
            return Staged(messages, size)
    refusal = check_staging(tx.staging, command, is_new=not found)
    if refusal is not None:
        return refusal
    expires_at = tx.now_ms + limits.STAGE_LIFE_MS
    begun = found or tx.query("begin_stage", command.queue, command.stage, expires_at)
    stage_id, page = begun[0][0], command.page
    tx.run(
        "add_part",
        [(stage_id, page, i, part.messages, part.bytes, part.body) for i, part in enumerate(command.parts)],
    )
    messages = sum(part.messages for part in command.parts)
    size = sum(part.bytes for part in command.parts)
    stored = stored_bytes(command)
    tx.query("grow_stage", stage_id, page, messages, size, expires_at, stored)
    staging = tx.staging
    tx.staging = replace(staging, stages=staging.stages + (not found), bytes=staging.bytes + stored)
    return Staged(messages, size)


def publish(
    tx: Transaction, commands: Sequence[Publish]
) -> list[Published | ServiceError | StageMissing | Deferred]:
    return [_publish(tx, command) for command in commands]


def _publish(tx: Transaction, command: Publish) -> Published | ServiceError | StageMissing | Deferred:
    if tx.allowances.used_up(Allowed.PUBLISH):
        return DEFERRED
    last = tx.query("find_publication", command.app)
    if last and last[0][0] >= command.version:
        return Published(False, 0, tx.staging.last_turn)
    if not last and tx.staging.apps >= limits.APPS_MAX and _to_forget(tx, full=True) is None:
        return TooManyApps()
    ids = []
    new: dict[str, Space] = {}
    twice = repeated(command.stages)
    if twice is not None:
        return missing(twice, 0)
    tx.allowances.of(Allowed.PUBLISH).charge(len(command.stages), 0)
    named = _encode([(stage.queue, stage.stage) for stage in command.stages]).decode()
    found = tx.query("find_stages", named) if command.stages else []
    for stage, (stage_id, pages, last_page, messages, size) in zip(command.stages, found, strict=True):
        if pages != stage.pages or last_page != stage.pages - 1:
            return missing(stage, pages)
        ids.append(stage_id)
        before = new.get(stage.queue, Space(0, 0))
        new[stage.queue] = Space(before.messages + messages, before.bytes + size)
    for queue, space in new.items():
        on_the_way = Space(*tx.query("on_the_way", queue)[0])
        refusal = tx.admit(queue) or check_space(tx.counted(queue), on_the_way, space, tx.rules(queue))
        if refusal is not None:
            return refusal
    _queue_stages(tx, ids, published=True)
    _note_version(tx, command, is_new=not last)
    return Published(True, sum(space.messages for space in new.values()), tx.staging.last_turn)


def _note_version(tx: Transaction, command: Publish, *, is_new: bool) -> None:
    tx.query("save_publication", command.app, command.version, tx.now_ms, command.once)
    apps = tx.staging.apps + is_new
    number = _to_forget(tx, full=apps > limits.APPS_MAX)
    if number is not None:
        tx.query("forget_publication", number)
        apps -= 1
    tx.staging = replace(tx.staging, apps=apps)


def _to_forget(tx: Transaction, *, full: bool) -> int | None:
    """The app to forget next, None for none. full: another one needs its place."""
    for once in (True, False):
        for number, published_at in tx.query("oldest_publication", once):
            if is_forgettable(published_at, tx.now_ms, once=once, full=full):
                found: int = number
                return found
    return None


def _queue_stages(tx: Transaction, ids: Sequence[int], *, published: bool) -> None:
    """Give these stages their turns, behind all others."""
    turn = tx.staging.last_turn
    tx.run("queue_stage", [(stage_id, turn + 1 + i, published) for i, stage_id in enumerate(ids)])
    staging = replace(tx.staging, last_turn=turn + len(ids), in_progress=tx.staging.in_progress + len(ids))
    if published and ids and staging.turn is None:
        staging = replace(staging, turn=turn + 1)
    tx.staging = staging


def discard(tx: Transaction, commands: Sequence[DiscardStage]) -> list[bool]:
    outcomes = []
    for command in commands:
        found = tx.query("find_stage", command.queue, command.stage)
        _queue_stages(tx, [row[0] for row in found], published=False)
        outcomes.append(bool(found))
    return outcomes


def end_stages(tx: Transaction, commands: Sequence[EndStages]) -> list[int]:
    outcomes = []
    for _ in commands:
        ended = [row[0] for row in tx.query("find_expired_stages", tx.now_ms, limits.STAGES_ENDED_MAX)]
        _queue_stages(tx, ended, published=False)
        outcomes.append(len(ended))
    return outcomes


def advance(tx: Transaction) -> None:
    """Move the next parts of published stages into their queues, or remove some of ended ones.

    In an isolated batch a stage that cannot be read is set aside, and the next batch goes on with the others.
    """
    if tx.isolated:
        error = tx.attempt(lambda: _take_step(tx, parts_max=1))
        if error is not None:
            stage_id, queue, _, size = tx.query("next_stage")[0]
            tx.query("set_stage_aside", stage_id)
            in_progress, turn = tx.staging.in_progress - 1, tx.query("first_turn")[0][0]
            tx.staging = replace(tx.staging, in_progress=in_progress, turn=turn)
            tx.set_aside.append(SetAside(queue, 0, f"stage {stage_id} ({size} bytes): {error}"))
    else:
        _take_step(tx, parts_max=limits.PUBLISH_STEP_MESSAGES_MAX)


def _take_step(tx: Transaction, parts_max: int) -> None:
    step = Step(shared=tx.allowances.shared)
    taken = 0
    while taken < parts_max and (found := tx.query("next_stage")):
        stage_id, queue, published, _ = found[0]
        messages = size = stored = 0
        while parts := tx.query("next_part", stage_id):
            rowid, part_messages, part_bytes, body_bytes = parts[0]
            if taken == parts_max or not step.takes(part_messages, part_bytes):
                tx.query("shrink_stage", stage_id, messages, size, stored)
                break
            if published:
                part = read_part(tx.query("part_body", rowid)[0][0])
                part = admitted(queue, part, tx.admit, tx.make_known)
                store(tx, queue, part, tx.rules(queue))
            tx.query("remove_part", rowid)
            taken += 1
            messages += part_messages
            size += part_bytes
            stored += body_bytes
        tx.staging = replace(tx.staging, bytes=tx.staging.bytes - stored)
        if parts:
            break
        tx.query("forget_stage", stage_id)
        tx.staging = replace(
            tx.staging,
            stages=tx.staging.stages - 1,
            in_progress=tx.staging.in_progress - 1,
            turn=tx.query("first_turn")[0][0],
        )
    tx.write_inserts()
