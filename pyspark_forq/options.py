"""The options of the data source: their names, values, defaults, and the uses that they go with.

An option that does not exist, or has no meaning for the use, is refused, and the error suggests the nearest name: Spark
itself ignores misspelt options.

A use is what the options are for: `write`, `stream write`, or `read` or `stream` with the mode, as in `read events`.
Spark's calls tell only `read` or `stream`; `parsed` adds the mode, which is an option itself.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, NamedTuple

from forq_trio.client.address import DEFAULT_URL, is_server_url, without_credentials
from forq_trio.model import limits
from forq_trio.model.access.secrets import why_no_secret
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.types import check_queue_name
from pyspark_forq.driver_files import text_of
from pyspark_forq.errors import ForqOptionError

READ = ("snapshot", "history", "events")
STREAM = ("consume", "events", "history")
READ_USES = frozenset(f"read {mode}" for mode in READ)
STREAM_USES = frozenset(f"stream {mode}" for mode in STREAM)
WRITE_USES = frozenset({"write", "stream write"})
EVERYWHERE = READ_USES | STREAM_USES | WRITE_USES
LOGS = frozenset({"read history", "read events", "stream history", "stream events"})

EARLIEST = "earliest"
LATEST = "latest"

RETRY_SECONDS_MAX = 3_600
NO_DEFAULTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Options:
    """The options of one read or write, checked."""

    use: str  # as above; of a read with its mode
    url: str = DEFAULT_URL
    token: str | None = field(default=None, repr=False)
    queue: str | None = None
    consumer: str | None = None
    starting_offsets: str | int = EARLIEST
    ending_offsets: int | None = None
    max_messages_per_trigger: int = 100_000
    max_bytes_per_trigger: int = 256 * 2**20
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    include_attributes: bool = False
    include_origin: bool = False
    idle_seconds: int | None = None  # None: that of the consumer; a day for a new one
    retry_seconds: int = 60
    txn_app_id: str | None = None
    txn_version: int | None = None
    # the certificates to trust, in PEM; None: those of each process's environment
    authorities: str | None = field(default=None, repr=False)
    # the token in the driver's environment, for executors that have none in theirs
    driver_token: str | None = field(default=None, repr=False)

    @property
    def mode(self) -> str:
        """The mode of a read; means nothing for a write."""
        return self.use.partition(" ")[2]

    def secret(self) -> str:
        """The secret: from the option, else from this process's environment, else from the driver's.

        Raises ForqOptionError if there is none.
        """
        secret = self.token or token_of_environment() or self.driver_token
        if secret is None:
            raise ForqOptionError(
                "there is no token: set FORQ_AUTH_SECRET (or FORQ_TOKEN) where Spark runs, or give option 'tokenFile'"
            )
        if (reason := why_no_secret(secret)) is not None:  # options were checked already
            raise ForqOptionError(f"the token of FORQ_AUTH_SECRET or FORQ_TOKEN {reason}")
        return secret


def token_of_environment() -> str | None:
    """The secret that this process was started with."""
    return os.environ.get("FORQ_AUTH_SECRET") or os.environ.get("FORQ_TOKEN") or None


def _url(text: str) -> str:
    if not is_server_url(text):
        raise ValueError(f"the URL of a server is wanted, such as {DEFAULT_URL}")
    return text


def _token(text: str) -> str:
    if (reason := why_no_secret(text)) is not None:
        raise ValueError(f"it {reason}")
    return text


def _token_file(text: str) -> str:
    return _token(text_of(text).strip())


def _authorities(text: str) -> str:
    import ssl  # takes a fifth of what a process of the source imports, and few need it

    found = text_of(text).encode("ascii", errors="ignore").decode()
    try:
        ssl.create_default_context(cadata=found or "none")
    except ssl.SSLError:
        raise ValueError("the file has no certificates in PEM") from None
    return found


def _queue(text: str) -> str:
    try:
        return check_queue_name(text)
    except ForqError as problem:
        raise ValueError(problem.message) from None


def _name(text: str) -> str:
    if not text:
        raise ValueError("a name is wanted")
    return text


def _mode(text: str) -> str:
    known = list(dict.fromkeys((*STREAM, *READ)))
    if text not in known:
        raise ValueError(f"one of {', '.join(known)} is wanted{_nearest(text, known)}")
    return text


def _offsets(text: str) -> str | int:
    if text in (EARLIEST, LATEST):
        return text
    if text.isascii() and text.isdigit() and 0 < int(text) <= limits.SEQUENCE_MAX:
        return int(text)
    raise ValueError("earliest, latest, or the first id to read is wanted")


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false is wanted")
    return text.lower() == "true"


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            raise ValueError(f"a whole number from {low:,} to {high:,} is wanted")
        return int(text)

    return parse


class Option(NamedTuple):
    """An option: its name, the member of Options that it sets, how its text is read, the uses it goes with, what it
    means, and what holds without it, where the member's default does not say that."""

    name: str
    member: str
    parse: Callable[[str], Any]
    uses: frozenset[str]
    meaning: str
    without: str = ""


OPTIONS = (
    Option("url", "url", _url, EVERYWHERE, "Where the server is."),
    Option(
        "token",
        "token",
        _token,
        EVERYWHERE,
        "The server's secret, or an access token. See [secrets](docs/spark.md#secrets-and-certificates).",
        "`FORQ_AUTH_SECRET`, `FORQ_TOKEN`",
    ),
    Option(
        "tokenFile", "token", _token_file, EVERYWHERE, "A file of the driver that has the secret or token."
    ),
    Option(
        "caFile",
        "authorities",
        _authorities,
        EVERYWHERE,
        "A file of the driver that has the certificates to trust, in PEM.",
        "`SSL_CERT_FILE`, or `certifi`'s",
    ),
    Option(
        "queue",
        "queue",
        _queue,
        EVERYWHERE,
        "The queue to read or write. Needed for `snapshot` and `consume`; of a log only what concerns this queue; a"
        " write without it needs the column `queue`.",
    ),
    Option(
        "mode",
        "mode",
        _mode,
        READ_USES | STREAM_USES,
        "What is read.",
        f"`{READ[0]}`, of a stream `{STREAM[0]}`",
    ),
    Option(
        "consumer",
        "consumer",
        _name,
        frozenset({"stream consume"}),
        "The name under which leases are kept. 1 to 64 characters of `A-Z a-z 0-9 . _ -`.",
        "needed",
    ),
    Option(
        "startingOffsets",
        "starting_offsets",
        _offsets,
        LOGS,
        "Where a new read begins. `earliest`, of streams also `latest`, or the first id to read.",
    ),
    Option(
        "endingOffsets",
        "ending_offsets",
        _whole(1, limits.SEQUENCE_MAX),
        LOGS & READ_USES,
        "The last id to read.",
        "the newest",
    ),
    Option(
        "maxMessagesPerTrigger",
        "max_messages_per_trigger",
        _whole(1, limits.CONSUMER_LEASE_MESSAGES_MAX),
        STREAM_USES,
        f"The most rows of a micro-batch. 1 to {limits.CONSUMER_LEASE_MESSAGES_MAX:,}. Of a log it counts ids, of all"
        " queues.",
    ),
    Option(
        "maxBytesPerTrigger",
        "max_bytes_per_trigger",
        _whole(1, limits.CONSUMER_LEASE_BYTES_MAX),
        frozenset({"stream consume"}),
        f"The most bytes of a micro-batch. At most {limits.CONSUMER_LEASE_BYTES_MAX:,}.",
    ),
    Option(
        "minPartitions",
        "min_partitions",
        _whole(1, limits.EXPORT_PARTITIONS_MAX),
        READ_USES | STREAM_USES,
        f"The least tasks that share a read. At most {limits.EXPORT_PARTITIONS_MAX:,}; a small read may have fewer.",
        "as many as make sense, up to 8",
    ),
    Option(
        "failOnDataLoss",
        "fail_on_data_loss",
        _switch,
        STREAM_USES | LOGS,
        "Whether a read fails when the server has not kept what it wants.",
    ),
    Option(
        "includeAttributes",
        "include_attributes",
        _switch,
        frozenset({"read snapshot", "read history", "stream consume", "stream history"}),
        "Whether messages have the column attributes.",
    ),
    Option(
        "includeOrigin",
        "include_origin",
        _switch,
        frozenset({"read snapshot", "read history", "stream history"}),
        "Whether messages have columns that say where a dead letter came from.",
    ),
    Option(
        "idleSeconds",
        "idle_seconds",
        _whole(limits.CONSUMER_IDLE_SECONDS_MIN, limits.CONSUMER_IDLE_SECONDS_MAX),
        frozenset({"stream consume"}),
        "How long the server keeps an open lease for a consumer that does not come."
        f" {limits.CONSUMER_IDLE_SECONDS_MIN:,} to {limits.CONSUMER_IDLE_SECONDS_MAX:,}.",
        f"{limits.CONSUMER_IDLE_SECONDS_DEFAULT:,}, or as it was",
    ),
    Option(
        "retrySeconds",
        "retry_seconds",
        _whole(0, RETRY_SECONDS_MAX),
        EVERYWHERE,
        f"How long a call is repeated while the server cannot be reached. 0 to {RETRY_SECONDS_MAX:,}.",
    ),
    Option(
        "txnAppId",
        "txn_app_id",
        _name,
        frozenset({"write"}),
        "Who writes, for writes that may be repeated.",
        "a new one for each write",
    ),
    Option(
        "txnVersion",
        "txn_version",
        _whole(0, limits.SEQUENCE_MAX),
        frozenset({"write"}),
        "Which write of txnAppId this is; one that is not newer does nothing. A whole number from 0 on. Give both or"
        " neither.",
    ),
)
_BY_NAME = {option.name.lower(): option for option in OPTIONS}

# Options of Spark's own that a data source gets, too.
_OF_SPARK = frozenset({"checkpointlocation", "queryname", "asyncprogresstrackingenabled"})


def check_names(given: Mapping[str, str]) -> None:
    """Raise ForqOptionError for a name that is not one of our options."""
    for name in given:
        if name.lower() not in _BY_NAME and name.lower() not in _OF_SPARK:
            nearest = get_close_matches(name.lower(), _BY_NAME, n=1)
            hint = f"; did you mean {_BY_NAME[nearest[0]].name!r}?" if nearest else _all_names()
            raise ForqOptionError(f"there is no option {name!r}{hint}")


def parsed(given: Mapping[str, str], use: str, defaults: Mapping[str, Any] = NO_DEFAULTS) -> Options:
    """The options of a `read`, `stream`, `write` or `stream write`, checked. Raises ForqOptionError.

    defaults: members of Options, for what is not given.
    """
    check_names(given)
    texts = {name.lower(): text for name, text in given.items()}
    if use in ("read", "stream"):
        use = f"{use} {_mode_of(texts, use)}"
    ours = {name: text for name, text in texts.items() if name not in _OF_SPARK}
    for name in ours:
        option = _BY_NAME[name]
        if use not in option.uses:
            is_for_streams = use in READ_USES and not option.uses & READ_USES and option.uses & STREAM_USES
            hint = "; it is for spark.readStream" if is_for_streams else ""
            raise ForqOptionError(f"option {option.name!r} means nothing for {_words(use)}{hint}")
    values = members_of(ours)
    values.pop("mode", None)
    options = Options(use=use, driver_token=token_of_environment(), **{**defaults, **values})
    _check_together(options, texts)
    return options


def members_of(texts: Mapping[str, str]) -> dict[str, Any]:
    """Read the texts of options, by names in lower case, into members of Options. Raises ForqOptionError."""
    if "token" in texts and "tokenfile" in texts:
        raise ForqOptionError("options 'token' and 'tokenFile' mean the same: give one of them")
    options = {_BY_NAME[name]: text for name, text in texts.items()}
    return {option.member: _value(option, text) for option, text in options.items()}


def for_writes(given: Mapping[str, str]) -> dict[str, str]:
    """The options of a table, without those for reads only. Raises ForqOptionError like `check_names`."""
    check_names(given)
    return {
        name: text
        for name, text in given.items()
        if name.lower() in _OF_SPARK or _BY_NAME[name.lower()].uses & WRITE_USES
    }


def likely_uses(given: Mapping[str, str]) -> tuple[str, str]:
    """`read` and `stream`, the likelier one first, because some options and modes go with only one of them."""
    names = {name.lower() for name in given}
    only_streams = [name for name in names & set(_BY_NAME) if not _BY_NAME[name].uses & READ_USES]
    mode = next((value for name, value in given.items() if name.lower() == "mode"), READ[0])
    return ("stream", "read") if only_streams or mode not in READ else ("read", "stream")


def _mode_of(texts: Mapping[str, str], use: str) -> str:
    """The mode that a read has."""
    modes = READ if use == "read" else STREAM
    if "mode" not in texts:
        return modes[0]
    mode: str = _value(_BY_NAME["mode"], texts["mode"])
    if mode not in modes:
        other = "readStream" if use == "read" else "read"
        raise ForqOptionError(f"mode {mode!r} is for spark.{other}; here it can be {', '.join(modes)}")
    return mode


def _value(option: Option, text: str) -> Any:
    shown = "" if option.name == "token" else f"={without_credentials(text)!r}"
    try:
        return option.parse(text)
    except ValueError as problem:
        raise ForqOptionError(f"option {option.name}{shown}: {problem}") from None


def _check_together(options: Options, texts: Mapping[str, str]) -> None:
    """Raise ForqOptionError if options exclude each other, or a required one is missing."""
    if options.use in ("read snapshot", "stream consume") and options.queue is None:
        hint = "" if texts else ": a table of SQL stores its options where it names no columns of its own"
        raise ForqOptionError(f"option 'queue' has to name the queue of {_words(options.use)}{hint}")
    if options.use == "stream consume" and options.consumer is None:
        raise ForqOptionError(
            "option 'consumer' has to name who reads: a query with the same consumer goes on where the last one was"
        )
    if options.use.startswith("read ") and options.starting_offsets == LATEST:
        raise ForqOptionError("startingOffsets='latest' is for spark.readStream: a batch would read nothing")
    starting, ending = options.starting_offsets, options.ending_offsets
    if isinstance(starting, int) and isinstance(ending, int) and ending < starting:
        raise ForqOptionError(f"endingOffsets={ending} is before startingOffsets={starting}")
    if (options.txn_app_id is None) != (options.txn_version is None):
        raise ForqOptionError("options 'txnAppId' and 'txnVersion' go together: give both or none")
    if texts.get("asyncprogresstrackingenabled", "").lower() == "true":
        raise ForqOptionError(
            "asyncProgressTrackingEnabled cannot be used: what is read once and written once rests on Spark's log"
        )


def _words(use: str) -> str:
    kind, _, mode = use.partition(" ")
    if kind == "write":
        return "a write"
    if use == "stream write":
        return "a stream's write"
    return f"spark.{'read' if kind == 'read' else 'readStream'} with mode {mode!r}"


def _nearest(text: str, known: list[str]) -> str:
    nearest = get_close_matches(text, known, n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def _all_names() -> str:
    return f"; there are {', '.join(option.name for option in OPTIONS)}"
