"""The results of commands that name messages by ids or receipts."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from forq_trio.cli.exits import Exit
from forq_trio.cli.output import ago, echo, print_json
from forq_trio.client.sync import ForqClient
from forq_trio.model.dead_letters.bodies import MoveResult
from forq_trio.model.errors import ForqError, MessageNotFound
from forq_trio.model.messages.receipts import ReceiptResult
from forq_trio.telemetry.words import counted

ResultT = TypeVar("ResultT")


def in_batches(
    names: Sequence[str], count: int, call: Callable[[Sequence[str]], Sequence[ResultT]]
) -> list[ResultT]:
    """The results of all ids or receipts, in requests that the server accepts: of up to `count`."""
    starts = range(0, len(names), count)
    return [result for start in starts for result in call(names[start : start + count])]


def end_in_words(client: ForqClient, queue: str, message_id: str) -> str:
    """How a message that is gone has ended, if the history knows it; else ""."""
    try:
        found = client.finished_message(queue, message_id)
    except ForqError:
        return ""
    return f"it has ended {ago(found.finished_at)} ago: {found.outcome}"


def report_results(results: Sequence[MoveResult | ReceiptResult], done: str, as_json: bool) -> int:
    """Print the result of each message; a refused one decides the exit code."""
    refused = [result for result in results if not result.ok]
    if as_json:
        for result in results:
            print_json(result)
    else:
        for result in refused:
            named = result.receipt if isinstance(result, ReceiptResult) else result.id
            echo(f"forq: {named}: {result.message} ({result.code})", err=True)
        echo(f"{counted(len(results) - len(refused), 'message')} {done}")
    if not refused:
        return Exit.OK
    return Exit.NOTHING if all(result.code == MessageNotFound.code for result in refused) else Exit.FAILED
