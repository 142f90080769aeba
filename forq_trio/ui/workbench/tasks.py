"""Redrives and deletions of many dead letters, in words: the bands above the list."""

from msgspec import Struct

from forq_trio.drawing import format
from forq_trio.model.dead_letters.redrives import RedriveInfo, done_to
from forq_trio.ui.workbench.filter import ALL_WORDS, task_words

_SECONDS_SEEN_MIN = 2.0


class Band(Struct, frozen=True):
    """A task in words."""

    task: RedriveInfo
    verb: str  # this and the next: the headline
    what: str
    value: int  # this and the next: of the bar
    top: int
    notes: list[str]  # the text below it


_VERBS = {
    ("redrive", "running"): "Redriving",
    ("redrive", "paused"): "Paused: redriving",
    ("redrive", "done"): "Redrove",
    ("redrive", "cancelled"): "Cancelled: redriving",
    ("redrive", "failed"): "Failed: redriving",
    ("delete", "running"): "Deleting",
    ("delete", "paused"): "Paused: deleting",
    ("delete", "done"): "Deleted",
    ("delete", "cancelled"): "Cancelled: deleting",
    ("delete", "failed"): "Failed: deleting",
}
_DRY_VERBS = {
    "running": "Dry run:",
    "paused": "Dry run, paused:",
    "done": "Dry run, nothing was changed:",
    "cancelled": "Dry run, cancelled, nothing was changed:",
    "failed": "Dry run, failed, nothing was changed:",
}


def band(task: RedriveInfo, now_ms: int) -> Band:
    """A task as its band shows it."""
    done = task.state == "done"
    return Band(
        task,
        _DRY_VERBS[task.state] if task.dry_run else _VERBS[task.action, task.state],
        _what(task),
        max(task.total, 1) if done else min(task.searched, task.total),
        max(task.total, 1),
        _notes(task, now_ms),
    )


def _what(task: RedriveInfo) -> str:
    words = task_words(task.filter)
    if task.dry_run:
        words = f"would {task.action} {words}"
    if task.action == "redrive":
        words += f" to {task.target}" if task.target else " back to where they came from"
    if task.rate_per_second is not None:
        words += f", {format.whole(task.rate_per_second)} a second"
    return words


def _notes(task: RedriveInfo, now_ms: int) -> list[str]:
    """How many are done, in a dry run how many would be, how many are left, and how long it takes."""
    word, done = done_to(task), task.moved
    if task.dry_run:
        word, done = f"would be {word}", task.matched
    if not task.filter.above_sequence and _is_all(task):
        notes = [f"{format.whole(done)} of {format.whole(max(task.total - task.skipped, done))} {word}"]
    else:
        notes = [f"{format.whole(done)} {word}"]
        if task.state != "done":
            notes.append(f"searched {format.whole(task.searched)} of {format.short(task.total)}")
    if task.skipped:
        why = (
            "a consumer holds them"
            if task.action == "delete" or task.target
            else "a consumer holds them or nothing says where they came from"
        )
        notes.append(f"{format.whole(task.skipped)} left where they are, {why}")
    left_ms = to_go_ms(task, now_ms)
    if left_ms is not None:
        notes.append(f"about {format.duration(left_ms)} to go")
    return notes


def _is_all(task: RedriveInfo) -> bool:
    wanted = task.filter
    return task_words(wanted) == ALL_WORDS


def to_go_ms(task: RedriveInfo, now_ms: int) -> float | None:
    """How long a task will still run, by its rate and by how many matched so far; None if that is unknown."""
    left = task.total - task.searched
    if task.state != "running" or task.filter.above_sequence or not task.searched or left <= 0:
        return None
    if task.rate_per_second is not None and not task.dry_run:  # a dry run has no pace
        if not task.matched:
            return None
        return left * task.matched / task.searched / task.rate_per_second * 1_000
    passed_ms = now_ms - task.started_at
    if passed_ms < _SECONDS_SEEN_MIN * 1_000:
        return None
    return passed_ms * left / task.searched


def remaining(task: RedriveInfo) -> str:
    """The line about a task in the dialog that confirms its cancellation."""
    verb = "Deletion" if task.action == "delete" else "Redrive"
    if task.dry_run:
        return f"Dry run: {verb.lower()} of {task_words(task.filter)}, {format.whole(task.matched)} counted so far"
    return f"{verb} of {task_words(task.filter)}, {format.whole(task.moved)} done so far"
