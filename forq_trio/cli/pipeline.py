"""`forq pipeline …`: archives events and finished messages, reports on them, sends them again, and loads datasets."""

from datetime import datetime
from pathlib import PurePath
from typing import Any

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import CommandT, json_option, pair, url_option
from forq_trio.cli.output import echo, print_json
from forq_trio.cli.progress import progress_bar
from forq_trio.cli.spark import need_spark, quiet_spark
from forq_trio.client.address import without_credentials
from forq_trio.model.errors import InvalidRequest
from forq_trio.model.logs.history import OUTCOMES
from forq_trio.telemetry.words import counted

_TABLES = ("events", "history")
_WORDS = {"events": "event", "history": "finished message"}


def spark_options(command: CommandT) -> CommandT:
    """--conf."""
    return click.option(
        "--conf",
        type=pair,
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting of Spark, such as spark.master; may be repeated.  [default: all cores of this machine]",
    )(command)


class PipelinePlace(click.Path):
    """A directory of this machine, or the URI of one in a store that Spark reaches. For use as an option's type."""

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(exists=exists, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check a directory; a URI is returned unchanged."""
        return value if "://" in value else super().convert(value, param, ctx)


def moment(text: str) -> str:
    """A time in ISO 8601. For use as an option's type."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a time in ISO 8601, as 2026-01-31T08:00") from None
    return text


def time_options(command: CommandT) -> CommandT:
    """--since and --until."""
    until = click.option(
        "--until", type=moment, metavar="TIME", help="Only what happened before, in ISO 8601."
    )
    since = click.option(
        "--since", type=moment, metavar="TIME", help="Only what happened from then on, in ISO 8601."
    )
    return since(until(command))


@click.group(cls=CommandGroup)
def pipeline() -> None:
    """Move many messages at once with Apache Spark: archive events and finished messages in files, report on them,
    send them again, and load files into queues.

    These commands need Java 17 or newer, and Spark, which the extra `spark` installs.

    \f
    [spark.md](docs/spark.md) explains what they do. The server stores events with `FORQ_EVENTS=on` and finished
    messages with `FORQ_HISTORY=on`: `archive` and `report` read the events, `archive` and `replay` the finished
    messages. On a terminal a bar shows the progress. Spark's own log goes to a file, which is named if the command
    fails and removed if it succeeds.
    """


@pipeline.command(short_help="Append new events and finished messages to Delta tables.")
@click.argument("archive", type=PipelinePlace())
@click.option("--queue", metavar="QUEUE", type=QUEUE, help="Only events and messages of this queue.")
@click.option(
    "--table",
    "tables",
    type=click.Choice(_TABLES),
    multiple=True,
    help="Only this table; may be repeated.  [default: both, if the server stores them]",
)
@click.option("--follow", is_flag=True, help="Continue every 30 seconds, until Ctrl-C.")
@json_option
@spark_options
@url_option
def archive(
    archive: str,
    queue: str | None,
    tables: tuple[str, ...],
    follow: bool,
    as_json: bool,
    conf: tuple[tuple[str, str], ...],
    url: str,
) -> None:
    """Append the lifecycle events and finished messages that are new since the last run to ARCHIVE.

    ARCHIVE is a directory, or a URI such as s3a://bucket/archive. It has a Delta table of events, and one of finished
    messages. Each row is written once, also if a run is killed and repeated.

    \f
    The tables are `ARCHIVE/events` and `ARCHIVE/history`; their Parquet files are partitioned by `date`. A URI is of a
    store that Spark reaches ([spark.md](docs/spark.md#object-stores-and-hdfs)). The tables themselves store how far
    they are. Ctrl-C ends `--follow` with exit code 0, and the next run continues there.
    """
    need_spark()
    kept = _kept(url, tables)
    with quiet_spark("archive", dict(conf)) as spark, progress_bar("archive") as show:
        from pyspark_forq.pipelines.archive import archive as run

        done = run(spark, archive, url=url, queue=queue, tables=kept, follow=follow, show=show)
    if as_json:
        print_json(done)
    else:
        rows = " and ".join(counted(number, _WORDS[table]) for table, number in done.rows.items())
        echo(f"{rows} archived in {archive}")


def _kept(url: str, tables: tuple[str, ...]) -> list[str]:
    """The tables to archive: the requested ones, or else those that the server stores."""
    with connect(url) as client:
        if tables:
            return list(tables)
        found = {"events": client.event_range(), "history": client.history_range()}
    kept = [table for table, each in found.items() if each.enabled or each.first <= each.last]
    if not kept:
        raise CliFailure(
            "the server keeps neither events nor a history: set FORQ_EVENTS=on or FORQ_HISTORY=on"
        )
    return kept


@pipeline.command(short_help="Rewrite an archive's past days as few files.")
@click.argument("archive", type=PipelinePlace(exists=True))
@click.option(
    "--before", metavar="DATE", help="Only days before this one, such as 2026-11-23.  [default: today in UTC]"
)
@click.option(
    "--keep-hours",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    default=168,
    show_default=True,
    help="Remove files that were replaced, or left behind by killed runs, at least this many hours ago.",
)
@json_option
@spark_options
def compact(
    archive: str, before: str | None, keep_hours: int, as_json: bool, conf: tuple[tuple[str, str], ...]
) -> None:
    """Rewrite the days of ARCHIVE that are over, so that each has few files.

    It may run together with forq pipeline archive, and may be killed at any time: a reader always sees each row once.

    \f
    The files are sorted by queue. It needs no server. Of two runs at once one fails and changes nothing. Files that
    were replaced stay for a week, for programs that still read them; the next run after that removes them, and files
    that killed runs have left.
    """
    need_spark()
    from datetime import date

    if before is not None:
        try:
            before = date.fromisoformat(before).isoformat()
        except ValueError:
            raise click.UsageError(f"{before!r} is not a date such as 2026-11-23") from None
    with quiet_spark("compact", dict(conf)) as spark, progress_bar("compact") as show:
        from pyspark_forq.pipelines.compact import compact as run

        done = run(spark, archive, before=before, keep_hours=keep_hours, show=show)
    if as_json:
        print_json(done)
    elif done.days:
        echo(
            f"{counted(done.rows, 'row')} rewritten: {counted(done.files_before, 'file')} became"
            f" {done.files_after:,}, for {counted(done.days, 'day')}"
        )
    else:
        echo("nothing to compact")


@pipeline.command(short_help="Write a page and tables of what happened in the queues.")
@click.argument("directory", type=click.Path(file_okay=False))
@click.option(
    "--archive",
    type=PipelinePlace(exists=True),
    help="Report on the events in this archive.  [default: those that the server stores]",
)
@click.option("--queue", metavar="QUEUE", type=QUEUE, help="Only events of this queue.")
@time_options
@click.option(
    "--window",
    default="1 minute",
    show_default=True,
    help="How much time a row of a table covers, such as '1 hour'.",
)
@click.option(
    "--stuck-after",
    default="1 hour",
    show_default=True,
    help="A message is stuck if nothing happened to it for this long.",
)
@click.option(
    "--queue-pages", is_flag=True, help="Also write a page for each of the 20 queues with the most traffic."
)
@json_option
@spark_options
@url_option
def report(
    directory: str,
    archive: str | None,
    as_json: bool,
    conf: tuple[tuple[str, str], ...],
    url: str,
    window: str,
    stuck_after: str,
    queue_pages: bool,
    **chosen: Any,
) -> None:
    """Write to DIRECTORY what happened in the queues: the page report.html, and tables of throughput, backlog,
    latencies, rates, attempts, reasons and stuck messages.

    The page is a single file without scripts, which can be sent by mail.

    \f
    The page is a single file without scripts; [spark.md](docs/spark.md#tables-of-events) has the columns of the
    tables.

    ![A report: two of six queues need attention, charts of all queues, a row for each](docs/images/report.png)

    The page shows the 20 queues with the most traffic one by one, and all others together. Events do not tell how many
    messages a queue had before the first one; the report takes the lowest number with which the backlog is never below
    zero, which is right for every queue that was empty once. Durations below zero (the server's clock was set back)
    count as zero, and the page says how many there were. Percentiles are exact to a thousandth of the rank.

    `--queue-pages` adds a page for each of those 20, `queues/NAME-….html`, which the queue's row links to; the name is
    the same in every report. Pages that an earlier report left for other queues are removed. On the page a message
    that only waits for a consumer is not stuck but waiting; the table `stuck` has both. Of the tables `reasons` and
    `stuck` the first 100 rows are written. With `--queue`, messages that were moved into that queue from another one
    are not counted: their move is an event of the other queue.
    """
    need_spark()
    from pyspark_forq.pipelines.report.tables import interval

    for option, time in (("--window", window), ("--stuck-after", stuck_after)):
        try:
            interval(time)
        except ValueError as problem:
            raise CliFailure(f"{option}: {problem}", Exit.USAGE) from None
    if archive is None:
        connect(url).close()
    with quiet_spark("report", dict(conf)) as spark, progress_bar("report") as show:
        from pyspark_forq.pipelines.archive import log_of
        from pyspark_forq.pipelines.report.write import report as run

        events = log_of(spark, "events", url=url, archive=archive, **chosen)
        source = (
            f"the server {without_credentials(url)}"
            if archive is None
            else f"the archive {PurePath(archive).name}"
        )
        done = run(
            events,
            directory,
            window=window,
            stuck_after=stuck_after,
            source=source,
            queue_pages=queue_pages,
            show=show,
        )
    if as_json:
        print_json(done)
    else:
        stuck = f", {counted(done.stuck, 'message')} stuck" if done.stuck else ""
        echo(f"{counted(done.events, 'event')} of {counted(done.queues, 'queue')}{stuck}: {done.page}")


@pipeline.command(short_help="Send finished messages again.")
@click.argument("queue", type=QUEUE)
@click.option(
    "--archive",
    type=PipelinePlace(exists=True),
    help="Take the messages from this archive.  [default: the server's history]",
)
@click.option("--from", "source_queue", metavar="QUEUE", type=QUEUE, help="Only messages of this queue.")
@time_options
@click.option(
    "--outcome",
    "outcomes",
    type=click.Choice((*OUTCOMES, "dead_lettered")),
    multiple=True,
    help="Only messages that ended like this; may be repeated.",
)
@click.option(
    "--dead-letters",
    is_flag=True,
    help="Also send dead letters of the queue that --from names; they stay in its dead-letter queue.",
)
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this message; may be repeated.")
@click.option("--where", metavar="EXPRESSION", help="Only messages for which this SQL expression is true.")
@click.option(
    "--name",
    metavar="NAME",
    help="The name of this replay, which is done once.  [default: made of the options]",
)
@click.option("--dry-run", is_flag=True, help="Only count the messages that would be sent.")
@json_option
@spark_options
@url_option
def replay(queue: str, as_json: bool, conf: tuple[tuple[str, str], ...], url: str, **chosen: Any) -> int:
    """Send finished messages to QUEUE as new ones, all at once, in the order in which they finished.

    Dead letters are left out without --dead-letters. With it, copies of those that are in the dead-letter queue, or
    ended there, are sent too; nothing is removed from it. To move dead letters, use forq dead redrive.

    The same command sends the messages once: repeat it after a kill, and if it was done already, nothing is sent. To
    send them again, give it another --name.

    \f
    Content, priority, group and attributes are as they were. The messages come from an archive or from the server's
    history.

    `--dead-letters` sends each once: those that are still there, and (with `FORQ_HISTORY=on`) those that ended there.
    Redriven ones are no dead letters any more. The dead-letter queue is the one of the queue's settings. They are
    chosen and ordered as the others are: `outcome` is `dead_lettered`, `reason`, `attempts` and `finished_at`
    (`--since`, `--until`) are of the move, `queue` is the dead-letter queue, and `dead_letter_outcome` says how they
    ended there, null while they have not. A token needs the scope `browse` for the dead-letter queue, too.

    All of them are published in one transaction, under a name, and a name is published once. `--where` is an SQL
    expression over `history_id`, `id`, `queue`, `sequence`, `content`, `priority`, `attempts`, `group`, `attributes`,
    `outcome`, `reason`, `received_at` and `finished_at`, such as `content like '%"country":"SE"%'`. If none is found,
    the exit code is 5.
    """
    need_spark()
    from pyspark_forq.pipelines.replay import check_dead_letters

    try:
        check_dead_letters(
            chosen["dead_letters"], chosen["archive"], chosen["source_queue"], chosen["outcomes"]
        )
    except InvalidRequest as problem:
        raise CliFailure(str(problem), Exit.USAGE) from None
    connect(url).close()
    with quiet_spark("replay", dict(conf)) as spark, progress_bar("replay") as show:
        from pyspark_forq.pipelines.replay import replay as run

        done = run(spark, queue, url=url, show=show, **chosen)
    if as_json:
        print_json(done)
        return Exit.OK if done.matched or done.already_done else Exit.NOTHING
    if done.already_done:
        echo("this replay was done before; another --name does it again")
        return Exit.OK
    if chosen["dry_run"]:
        for name, number in done.matched.items():
            echo(f"{counted(number, 'message')} from {name}")
        echo(f"{counted(sum(done.matched.values()), 'message')} would be sent to {queue}")
    else:
        echo(f"{counted(done.published, 'message')} sent to {queue}")
    return Exit.OK if done.matched else Exit.NOTHING


@pipeline.command(short_help="Send each row of a dataset as a message.")
@click.argument("dataset")
@click.argument("queue", type=QUEUE)
@click.option(
    "--format",
    "format",
    type=click.Choice(("parquet", "json", "csv", "text")),
    help="The format of the files.  [default: by their names]",
)
@click.option(
    "--content", metavar="COLUMN", help="The column with the content.  [default: all columns, as JSON]"
)
@click.option(
    "--column",
    "columns",
    type=pair,
    multiple=True,
    metavar="MEMBER=COLUMN",
    help="The column with a member of the message: priority, delay_ms, ttl_ms, process_after, attributes, group,"
    " deduplication_id or max_attempts; may be repeated.",
)
@click.option(
    "--checkpoint",
    type=PipelinePlace(),
    help="The directory that remembers what was loaded.  [default: next to the dataset]",
)
@json_option
@spark_options
@url_option
def load(
    dataset: str,
    queue: str,
    as_json: bool,
    conf: tuple[tuple[str, str], ...],
    url: str,
    columns: tuple[tuple[str, str], ...],
    **chosen: Any,
) -> None:
    """Send each row of DATASET (Parquet, JSON lines, CSV with a header, or text) to QUEUE as a message.

    Each row is sent once: if the command is interrupted, the next run continues where it was. It also loads files that
    were added since. Rows without a content are skipped.

    \f
    Formats are Parquet, JSON (an object a line), CSV (with a header) and text (a message a line). DATASET is a file, a
    directory or a pattern. If the command is interrupted, the next run continues where it was. It also loads files
    that were added since. A file that was loaded is not loaded again, even if it has changed. Rows without a content
    are skipped and counted.
    """
    need_spark()
    for member, column in columns:
        if not column:
            raise CliFailure(f"--column: {member} needs the name of a column", Exit.USAGE)
    connect(url).close()
    with quiet_spark("load", dict(conf)) as spark, progress_bar("load") as show:
        from pyspark_forq.pipelines.load import load as run

        done = run(spark, dataset, queue, url=url, columns=dict(columns), show=show, **chosen)
    if as_json:
        print_json(done)
    else:
        skipped = f", {done.skipped:,} skipped, which have no content" if done.skipped else ""
        echo(f"{counted(done.read, 'row')} read, {counted(done.published, 'message')} sent{skipped}")
