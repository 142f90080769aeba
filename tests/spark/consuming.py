"""A stream that drains a queue, whose reader a test calls as Spark would."""

from pyspark_forq.consume import ConsumeReader
from pyspark_forq.options import parsed
from pyspark_forq.schemas import schema_of
from support.real_server import SECRET


def reader_of(url: str, queue: str, consumer: str) -> ConsumeReader:
    options = parsed({"url": url, "token": SECRET, "queue": queue, "consumer": consumer}, "stream")
    return ConsumeReader(options, schema_of(options))


def end_of_call_ahead(reader: ConsumeReader) -> None:
    """Wait until the call that acknowledges and leases ahead, if one is under way, has been answered."""
    thread = reader._ahead._thread
    if thread is not None:
        thread.join()
