"""The options of Spark's data source, and the columns of what it reads and writes. Spark need not be there."""

from collections.abc import Iterable, Iterator
from dataclasses import fields

from docs._generate.markdown import code, page, table, with_links
from pyspark_forq.columns import ATTRIBUTES, COLUMNS, EVENTS, MESSAGES, OF_MODE, ORIGIN, Column
from pyspark_forq.options import EVERYWHERE, LOGS, OPTIONS, READ_USES, STREAM_USES, Option, Options

SOURCE = "pyspark_forq/options.py and pyspark_forq/columns.py"
USES = {
    EVERYWHERE: "all",
    READ_USES | STREAM_USES: "reads",
    STREAM_USES: "streams",
    LOGS: "logs",
    LOGS & READ_USES: "batch reads of logs",
    STREAM_USES | LOGS: "streams, logs",
    frozenset({"read snapshot", "read history", "stream consume", "stream history"}): "messages",
    frozenset({"read snapshot", "read history", "stream history"}): "`snapshot`, `history`",
    frozenset({"stream consume"}): "`consume`",
    frozenset({"write"}): "batch writes",
}
DEFAULTS = {field.name: field.default for field in fields(Options)}


def pages() -> Iterator[tuple[str, str]]:
    yield "spark.md", page("Spark: options and columns", SOURCE, *_blocks())


def _blocks() -> Iterator[str]:
    yield "Of the data source `forq`, which [the guide](../spark.md) explains."
    yield "## Options"
    yield (
        "Upper and lower case are the same. An unknown option, or one that does not apply to the read or write, is an "
        "error that names the nearest one. *Logs* are the modes `events` and `history`, *messages* all modes but "
        "`events`."
    )
    yield table(["option", "for", "default", "meaning"], map(_option, OPTIONS))
    yield "## Columns of messages"
    yield (
        "Of the modes `snapshot`, `consume` and `history`, in this order. `session` sets Spark's time zone to UTC."
    )
    yield table(["column", "type", "in", "meaning"], _of_messages())
    yield "## Columns of events"
    yield "[Their kinds](events.md#lifecycle-events)."
    yield table(["column", "type", "meaning"], _rows(EVENTS))
    yield "## Columns that are written"
    yield (
        "They may be in any order; any other column is an error that names the nearest one. Whole numbers may have any "
        "width. Null means what a missing column means, except in `content` and `queue`, where it is an error. "
        "[Options of a message](queues.md#options-of-a-message) says what they mean."
    )
    yield table(["column", "type", "without it"], _rows(COLUMNS.values()))


def _option(option: Option) -> list[str]:
    return [code(option.name), USES[option.uses], _default(option), with_links(option.meaning)]


def _default(option: Option) -> str:
    value = DEFAULTS.get(option.member)
    if option.without or value is None:
        return option.without
    return f"{value:,}" if type(value) is int else code(str(value).lower())


def _of_messages() -> Iterator[list[str]]:
    places = {
        "all": MESSAGES,
        "`includeAttributes`": ATTRIBUTES,
        **{code(mode): columns for mode, columns in OF_MODE.items()},
        "`includeOrigin`": ORIGIN,
    }
    for place, columns in places.items():
        for name, kind, says in _rows(columns):
            yield [name, kind, place, says]


def _rows(columns: Iterable[Column]) -> Iterator[list[str]]:
    for column in columns:
        yield [code(column.name), column.type, column.says]
