"""A program for test_pipeline_stores.py: the pipelines on a store, with two kills and two rivals.

Arguments: the store's URI, the server's URL, a queue with four messages, and Spark's settings as JSON.
"""

import json
import sys

from pyspark_forq import archive, archived, compact, load, replay, session
from pyspark_forq.pipelines.archive_table import ArchiveError


class Killed(BaseException):
    """Nothing happens behind it, as after a kill."""


def archive_name(store: str) -> str:
    """One that is hard to name; the library cannot write a space to HDFS."""
    return "archive" if store.startswith("hdfs") else "the archive [1]"


def main(store: str, url: str, queue: str, settings: str) -> None:
    spark = session("stores", **json.loads(settings))
    place, asked = f"{store}/lake/{archive_name(store)}", {"url": url, "queue": queue}
    said = []

    def kill(name: str) -> None:
        raise Killed

    def attempt(run, *arguments, **more) -> None:
        try:
            run(spark, *arguments, **more)
        except (Killed, ArchiveError) as problem:
            said.append(str(problem) or "killed")

    def count() -> int:
        rows = [row["id"] for row in archived(spark, place, "events").select("id").collect()]
        assert len(set(rows)) == len(rows)
        return len(rows)

    attempt(archive, place, **asked, step=kill)
    attempt(archive, place, **asked, step=lambda name: archive(spark, place, **asked))
    frame = archived(spark, place, "events")
    before = count()
    lines = spark.createDataFrame([("five",), ("six",)], "value string")
    lines.coalesce(1).write.text(f"{store}/lines.txt")
    loaded = load(spark, f"{store}/lines.txt", queue, url=url).published
    again = load(spark, f"{store}/lines.txt", queue, url=url).published
    archive(spark, place, **asked)
    attempt(compact, place, before="2100-01-01", step=kill)
    rival = {"before": "2100-01-01"}
    attempt(compact, place, **rival, step=lambda name: compact(spark, place, **rival))
    late = frame.count()
    assert archived(spark, place, "events", queue=queue, since="2000-01-01").count() == count()
    compact(spark, place, before="2100-01-01", keep_hours=0)
    sent = replay(spark, f"{queue}-again", archive=place, url=url).published
    found = {"before": before, "late": late, "after": count(), "loaded": [loaded, again], "sent": sent}
    print(json.dumps({"said": said, **found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
