"""Starts Spark for a command. Its output goes to a log file, which is named when something fails."""

import importlib.util
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from traceback import walk_tb
from typing import Any

from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.progress import progress_bar
from forq_trio.model.errors import ForqError
from forq_trio.model.extras import how_to_install

_SETTINGS = {"spark.log.level": "WARN", "spark.ui.enabled": "false"}
_HERE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def need_spark() -> None:
    """Raise CliFailure if Spark is not installed; it names the command that installs it."""
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "pyarrow", "pandas", "deltalake")):
        raise CliFailure(f"pipelines need Spark, which is not here: {how_to_install('spark')}", Exit.USAGE)


@contextmanager
def quiet_spark(name: str, conf: dict[str, str]) -> Iterator[Any]:
    """A Spark session while the body runs; its log is removed if all goes well. conf: settings of the caller.

    Errors become one sentence; for an error of Spark it ends with the place of the log.
    """
    need_spark()
    from pyspark_forq.spark_session import send_query_logs_to

    descriptor, path = tempfile.mkstemp(prefix="forq-spark-", suffix=".log")
    try:
        with os.fdopen(descriptor, "ab", buffering=0) as log:
            handler = logging.FileHandler(path)
            logging.getLogger().addHandler(handler)
            try:
                with _words(path):
                    spark = _started(name, conf, log.fileno())
                    send_query_logs_to(handler)
                    try:
                        yield spark
                    finally:
                        spark.stop()
            finally:
                logging.getLogger().removeHandler(handler)
                handler.close()
    except CliFailure as problem:
        if path not in str(problem):
            Path(path).unlink()
        raise
    except BaseException:
        Path(path).unlink()
        raise
    Path(path).unlink()


@contextmanager
def _words(log: str) -> Iterator[None]:
    """Replace the errors of Spark and of its tasks that the body raises by sentences of ours."""
    from pyspark_forq.errors import ForqDataSourceError, reason_of

    try:
        yield
    except (CliFailure, ForqError, OSError):
        raise
    except ForqDataSourceError as problem:
        raise CliFailure(str(problem)) from None
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark", "py4j")):
            raise
        if (reason := reason_of(problem)) is not None:
            raise CliFailure(reason) from None
        with Path(log).open("a", encoding="utf-8", errors="replace") as file:
            print(problem, file=file)
        lines = [line for line in map(str.strip, str(problem).splitlines()) if line]
        if lines and lines[0].startswith("An error occurred while calling"):  # the next one has the exception
            lines = [line.removeprefix(": ") for line in lines[1:]] or lines
        words = " ".join((lines or [type(problem).__name__])[0].split()).rstrip(";")
        raise CliFailure(f"Spark failed: {words}\nforq: its log is {log}") from None


def _started(name: str, conf: dict[str, str], log: int) -> Any:
    """A session. Its JVM writes to `log` as long as it runs, because it inherits that as its standard streams."""
    from pyspark_forq.spark_session import connects, session

    settings = conf
    if not connects(conf):
        settings = _SETTINGS | ({} if "spark.master" in conf else _HERE) | conf
    with progress_bar(f"{name}: starting Spark"), _streams_to(log):
        try:
            return session(f"forq pipeline {name}", **settings)
        except KeyboardInterrupt as stop:
            _end_processes(stop)
            raise
        except Exception as problem:
            if "JAVA_GATEWAY_EXITED" not in str(problem) and not isinstance(problem, FileNotFoundError):
                raise
    raise CliFailure(
        "Spark could not start; it needs Java 17 or newer (on Debian: apt install openjdk-17-jre-headless)"
    )


def _end_processes(stop: KeyboardInterrupt) -> None:
    """End the processes that were being started when `stop` was raised: a half-started JVM would run for ever.

    Until the JVM has said where it listens, PySpark has the process only in a local variable.
    """
    for frame, _ in walk_tb(stop.__traceback__):
        for value in frame.f_locals.values():
            if isinstance(value, Popen):
                value.kill()
                value.wait()


@contextmanager
def _streams_to(descriptor: int) -> Iterator[None]:
    """Processes that the body starts get `descriptor` as stdout and stderr; Python's own streams do not change."""
    kept = {number: os.dup(number) for number in (1, 2)}
    streams = sys.stdout, sys.stderr
    encoding = streams[1].encoding
    try:
        for stream in streams:
            stream.flush()
        with os.fdopen(os.dup(2), "w", encoding=encoding) as terminal:
            sys.stderr = terminal
            for number in kept:
                os.dup2(descriptor, number)
            yield
    finally:
        sys.stdout, sys.stderr = streams
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
