"""Stages and publications.

A publication only numbers its stages; later batches move the messages (`advance`). Each batch continues with the stages
with the lowest numbers, as far as `PublishStep` permits. The messages of a published stage enter its queue like sends,
in the order of pages and lines, without a check of its bounds. The pages of ended stages are removed after all
published ones. `next_due_ms` asks for the next batch at once. A part is read, stored and deleted in one transaction.
"""

from collections.abc import Hashable, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import DiscardStage, EndStages, Publish, StagePage
from forq_trio.model.errors import ForqError, ServiceError
from forq_trio.model.publishing.types import Published, Staged
from forq_trio.storage.allowance import Step
from forq_trio.storage.apps import share_of, shares_with
from forq_trio.storage.engine import DEFERRED, DamagedMessage, Deferred
from forq_trio.storage.publishing import (
    PublishStep,
    admitted,
    check_space,
    check_staging,
    missing,
    read_part,
    repeated,
    stored_bytes,
)
from forq_trio.storage.relational.operations.apps import matching_apps, note_version
from forq_trio.storage.relational.operations.send import store
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.own_work import OWN_WORK, OwnWork
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import Space

_encode = msgspec.json.Encoder().encode


def _changes_of_publication(_: Transaction, command: Publish) -> list[Hashable]:
    return [("app", command.app), *{stage.queue for stage in command.stages}]


@operation_on_each(StagePage, changes=lambda _, command: [(command.queue, command.stage)])
def stage_page(tx: Transaction, command: StagePage) -> Staged | ServiceError:
    found = tx.query("find_stage", command.queue, command.stage)
    made_by: str = found[0][1] if found else command.key.name
    if found:
        parts, messages, size = tx.query("find_staged_page", found[0][0], command.page)[0]
        if parts:
            return Staged(messages, size)
    if not found and share_of(tx.staging.totals, made_by).stages >= limits.STAGES_A_KEY_MAX:
        for stage_id, maker, queue in tx.query("oldest_empty_stage", made_by):
            tx.connection.changed_in(queue)
            _queue_stages(tx, [(stage_id, maker)], published=False)
    refusal = check_staging(tx.staging.totals, command, made_by, is_new=not found)
    if refusal is not None:
        return refusal
    expires_at = tx.now_ms + limits.STAGE_LIFE_MS
    begun = found or tx.query("begin_stage", command.queue, command.stage, expires_at, made_by)
    stage_id, page = begun[0][0], command.page
    tx.run(
        "add_part",
        [(stage_id, page, i, part.messages, part.bytes, part.body) for i, part in enumerate(command.parts)],
    )
    messages = sum(part.messages for part in command.parts)
    size = sum(part.bytes for part in command.parts)
    stored = stored_bytes(command)
    tx.query("grow_stage", stage_id, page, messages, size, expires_at, stored)
    staging = tx.staging.totals
    tx.staging.totals = replace(
        staging,
        stages=staging.stages + (not found),
        bytes=staging.bytes + stored,
        shares=shares_with(staging.shares, made_by, stages=not found, size=stored),
    )
    return Staged(messages, size)


@operation_on_each(Publish, changes=_changes_of_publication)
def publish(tx: Transaction, command: Publish) -> Published | ForqError | Deferred:
    if tx.allowances.used_up(Step.PUBLISH):
        return DEFERRED
    matching = matching_apps(tx, command)
    if isinstance(matching, ForqError):
        return matching
    if any(app.version >= command.version for app in matching.values()):
        return Published(False, 0, tx.staging.totals.last_entry)
    waiting = []
    new: dict[str, Space] = {}
    twice = repeated(command.stages)
    if twice is not None:
        return missing(twice, 0)
    tx.allowances.of(Step.PUBLISH).charge(len(command.stages), 0)
    named = _encode([(stage.queue, stage.stage) for stage in command.stages]).decode()
    found = tx.query("find_stages", named) if command.stages else []
    for stage, (stage_id, made_by, pages, last_page, messages, size) in zip(
        command.stages, found, strict=True
    ):
        if pages != stage.pages or last_page != stage.pages - 1:
            return missing(stage, pages)
        waiting.append((stage_id, made_by))
        before = new.get(stage.queue, Space(0, 0))
        new[stage.queue] = Space(before.messages + messages, before.bytes + size)
    on_the_way = tx.query_each("on_the_way", [(queue,) for queue in new])
    for (queue, space), (coming,) in zip(new.items(), on_the_way, strict=True):
        refusal = tx.admit(queue) or check_space(tx.counts.of(queue), Space(*coming), space, tx.rules(queue))
        if refusal is not None:
            return refusal
    _queue_stages(tx, waiting, published=True)
    note_version(tx, command, matching)
    return Published(True, sum(space.messages for space in new.values()), tx.staging.totals.last_entry)


def _queue_stages(tx: Transaction, waiting: Sequence[tuple[int, str]], *, published: bool) -> None:
    """Number these stages after all others, which is the order in which they enter. waiting: (id, maker's key)."""
    staging, count = tx.staging.totals, len(waiting)
    numbered = enumerate(waiting, staging.last_entry + 1)
    tx.run("queue_stage", [(stage_id, entry, published) for entry, (stage_id, _) in numbered])
    shares = staging.shares
    for _, made_by in waiting:
        shares = shares_with(shares, made_by, stages=-1)
    first = (
        staging.last_entry + 1
        if published and waiting and staging.first_entry is None
        else staging.first_entry
    )
    tx.staging.totals = replace(
        staging,
        last_entry=staging.last_entry + count,
        in_progress=staging.in_progress + count,
        first_entry=first,
        shares=shares,
    )


@operation_on_each(DiscardStage, changes=lambda _, command: [(command.queue, command.stage)])
def discard(tx: Transaction, command: DiscardStage) -> bool:
    found = tx.query("find_stage", command.queue, command.stage)
    _queue_stages(tx, found, published=False)
    return bool(found)


@operation_on_each(EndStages)
def end_stages(tx: Transaction, _: EndStages) -> int:
    ended = tx.query("find_expired_stages", tx.now_ms, limits.STAGES_ENDED_MAX)
    _queue_stages(tx, ended, published=False)
    return len(ended)


def advance(tx: Transaction) -> None:
    """Move the next parts of published stages into their queues, or remove some of ended ones.

    In an isolated batch each part is moved by itself: a stage that cannot be read is set aside, and the others go on.
    """
    step, parts_max = PublishStep(shared=tx.allowances.shared), limits.PUBLISH_STEP_MESSAGES_MAX
    if not tx.isolated:
        _take_parts(tx, step, parts_max)
        return
    for _ in range(parts_max):
        if step.is_full or not tx.staging.totals.in_progress:
            return
        error = tx.attempt(lambda: _take_parts(tx, step, 1))
        if error is not None:
            _set_stage_aside(tx, error)


def _set_stage_aside(tx: Transaction, error: Exception) -> None:
    stage_id, queue, _, size, _ = tx.query("next_stage")[0]
    tx.query("set_stage_aside", stage_id)
    in_progress, first = tx.staging.totals.in_progress - 1, tx.query("first_entry")[0][0]
    tx.staging.totals = replace(tx.staging.totals, in_progress=in_progress, first_entry=first)
    tx.set_aside.messages.append(DamagedMessage(queue, 0, f"stage {stage_id} ({size} bytes): {error}"))


def _take_parts(tx: Transaction, step: PublishStep, parts_max: int) -> None:
    tx.begin_step()
    taken = ended = 0
    while taken < parts_max and (found := tx.query("next_stage")):
        stage_id, queue, published, _, made_by = found[0]
        messages = size = stored = 0
        while parts := tx.query("next_part", stage_id):
            rowid, part_messages, part_bytes, body_bytes = parts[0]
            if taken == parts_max or (taken and tx.waited_out) or not step.takes(part_messages, part_bytes):
                tx.query("shrink_stage", stage_id, messages, size, stored)
                break
            if published:
                part = read_part(tx.query("part_body", rowid)[0][0])
                tx.counts.make_known(queue)
                part = admitted(part, partial(tx.name, made_by=made_by))
                store(tx, queue, part, tx.rules(queue))
            tx.query("remove_part", rowid)
            taken += 1
            messages += part_messages
            size += part_bytes
            stored += body_bytes
        shares = shares_with(tx.staging.totals.shares, made_by, size=-stored)
        tx.staging.totals = replace(tx.staging.totals, bytes=tx.staging.totals.bytes - stored, shares=shares)
        if parts:
            break
        tx.query("forget_stage", stage_id)
        tx.staging.totals = replace(
            tx.staging.totals,
            stages=tx.staging.totals.stages - 1,
            in_progress=tx.staging.totals.in_progress - 1,
        )
        ended += 1
    if ended:
        tx.staging.totals = replace(tx.staging.totals, first_entry=tx.query("first_entry")[0][0])
    tx.write_inserts()


OWN_WORK.append(OwnWork(lambda tx: tx.now_ms if tx.staging.totals.in_progress else None, advance))
