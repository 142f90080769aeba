"""The curl command that sends a message again.

The content is JSON in which a single quote, and what cannot be seen, is an escape (\\u0027): so nothing in it
can end the quoting of a shell, and nothing is lost in a terminal. A body longer than one argument may be comes from a
here-document; it is one line that begins with a brace, so it cannot be mistaken for the document's end, and there an
exclamation mark, which an interactive shell might take for its history, is an escape, too.
"""

import json
import re
import shlex
from typing import Any

from forq_trio.model import limits
from forq_trio.model.messages.types import MessageInfo

_ARGUMENT_BYTES_MAX = 100_000
# Runs of single quotes, of control characters, and of characters beyond ASCII, of which few are not printable.
_ESCAPED = re.compile("'+|[\\x00-\\x1f\\x7f]+|[^\\x00-\\x7f]+")


def curl_command(message: MessageInfo, queue: str, api_url: str, now_ms: int) -> str:
    """For a POSIX shell in which FORQ_AUTH_SECRET is set, without a line end, so that pasting does not run it.

    It sends to `queue`. A delay that is not over stays in the command.
    """
    body = quotable(json.dumps(_members(message, now_ms), ensure_ascii=False, separators=(",", ":")))
    url = shlex.quote(f"{api_url}/api/v1/queues/{queue}/messages")
    head = f"curl -i -H \"X-API-Key: $FORQ_AUTH_SECRET\" -H 'Content-Type: application/json' {url}"
    if len(body.encode()) <= _ARGUMENT_BYTES_MAX:
        return f"{head} \\\n  --data-raw '{body}'"
    line = body.replace("!", "\\u0021")
    return f"{head} --data-binary @- <<'END'\n{line}\nEND"


def first_message(api_url: str, queue: str) -> str:
    """A command that sends some message to the queue."""
    url = shlex.quote(f"{api_url}/api/v1/queues/{queue}/messages")
    head = f"curl -i -H \"X-API-Key: $FORQ_AUTH_SECRET\" -H 'Content-Type: application/json' {url}"
    return f"""{head} --data-raw '{{"content": "I am going on an adventure!"}}'"""


def quotable(text: str) -> str:
    """JSON with escapes for single quotes and for all that is not printable."""
    if text.isascii() and text.isprintable() and "'" not in text:
        return text
    return _ESCAPED.sub(_escape, text)


def _escape(run: re.Match[str]) -> str:
    """A run of characters as escapes, by the numbers of their UTF-16; those that are printable after all stay."""
    if run[0].isprintable() and "'" not in run[0]:
        return run[0]
    digits = run[0].encode("utf-16-be", "surrogatepass").hex()
    return "\\u" + "\\u".join(map("".join, zip(*[iter(digits)] * 4, strict=True)))


def _members(message: MessageInfo, now_ms: int) -> dict[str, Any]:
    """The message's members in the JSON of `NewMessage`, without defaults."""
    members: dict[str, Any] = {"content": message.content}
    if message.priority != limits.PRIORITY_DEFAULT:
        members["priority"] = message.priority
    if message.attempts == 0 and not message.failures and message.process_after > now_ms:
        members["processAfter"] = message.process_after
    optional = {
        "attributes": message.attributes or None,
        "group": message.group,
        "maxAttempts": message.max_attempts,
        "ttlMs": message.ttl_ms,
        "deadLetterQueue": message.dead_letter_queue,
    }
    return members | {name: value for name, value in optional.items() if value is not None}
