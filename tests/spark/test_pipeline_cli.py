"""`forq pipeline`: what it says without Spark, how it ends, and that Spark's words stay out of the terminal."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forq_trio.cli.commands import run
from forq_trio.cli.exits import CliFailure
from forq_trio.cli.spark import _words
from support.real_server import environment

EXECUTABLE = [sys.executable, "-m", "forq_trio.cli", "pipeline"]


def command(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*EXECUTABLE, *arguments],
        capture_output=True,
        text=True,
        env=environment(**more),
        timeout=300,
        check=False,
    )


def test_without_spark_it_says_how_to_have_it(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.delenv("FORQ_AUTH_SECRET", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    directory = str(tmp_path)
    commands = (["archive", directory], ["compact", directory], ["report", directory], ["replay", "q"])
    for arguments in (*commands, ["load", "x.csv", "q"]):
        assert run(["pipeline", *arguments]) == 2
        said = capsys.readouterr()
        assert said.err == "forq: pipelines need Spark, which is not here: pip install 'forq-trio[spark]'\n"


def test_replay_says_that_dead_letters_are_left_out(capsys) -> None:
    assert run(["pipeline", "replay", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Dead letters are left out without --dead-letters." in said


def test_dead_letters_need_a_queue_before_spark_starts(capsys) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")
    assert run(["pipeline", "replay", "q", "--dead-letters"]) == 2
    assert "whose dead letters? name the queue that they come from" in capsys.readouterr().err


def test_a_time_that_is_none_is_refused_before_spark_starts(capsys, tmp_path) -> None:
    assert run(["pipeline", "report", str(tmp_path), "--since", "yesterday"]) == 2
    assert "'yesterday' is not a time in ISO 8601" in capsys.readouterr().err


def test_lengths_of_time_and_columns_are_checked_before_spark_starts(capsys, tmp_path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")
    for option in ("--window", "--stuck-after"):
        assert run(["pipeline", "report", str(tmp_path / "report"), option, "soon"]) == 2
        assert f"forq: {option}: 'soon' is no length of time" in capsys.readouterr().err
    assert run(["pipeline", "load", "lines.txt", "q", "--column", "priority="]) == 2
    assert capsys.readouterr().err == "forq: --column: priority needs the name of a column\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at 'here'. SQLSTATE: 42601\n\n== SQL ==\nhere",
            "[PARSE_SYNTAX_ERROR]",
        ),
        (
            "An error occurred while calling o1.x.\n: java.io.IOException: no disk\n\tat a.B",
            "java.io.IOException:",
        ),
        ("", "PySparkException"),
    ],
)
def test_what_spark_says_is_told_and_in_the_log(tmp_path, problem, words) -> None:
    errors = pytest.importorskip("pyspark.errors", reason="pyspark is not here (pip install -e '.[spark]')")
    log = tmp_path / "spark.log"
    with (
        pytest.raises(CliFailure, match=f"^{re.escape(f'Spark failed: {words}')}") as raised,
        _words(str(log)),
    ):
        raise errors.PySparkException(problem)
    assert str(raised.value).endswith(f"\nforq: its log is {log}")
    assert problem in log.read_text()


def test_compact_checks_its_date_and_place(capsys, tmp_path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")
    assert run(["pipeline", "compact", str(tmp_path / "none")]) == 2
    assert "does not exist" in capsys.readouterr().err
    assert run(["pipeline", "compact", str(tmp_path), "--before", "yesterday"]) == 2
    assert "'yesterday' is not a date" in capsys.readouterr().err


def program(place: Path, text: str) -> Path:
    """A shell script that can be run."""
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
    place.chmod(0o755)
    return place


@pytest.mark.process
def test_ctrl_c_while_spark_starts_leaves_no_jvm(java, shared, tmp_path) -> None:
    """The JVM of this test says that it is there, and never that it listens."""
    said = tmp_path / "said"
    os.mkfifo(said)
    waiting = f'echo $$ > "{said}"; exec tail -f /dev/null'
    program(
        tmp_path / "bin" / "java", f'case "$*" in *launcher.Main*) exec "{java}" "$@";; *) {waiting};; esac\n'
    )
    started = subprocess.Popen(
        [*EXECUTABLE, "archive", str(tmp_path / "archive")],
        env=environment(FORQ_URL=shared.url, JAVA_HOME=str(tmp_path), TMPDIR=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    jvm = int(said.read_text())
    started.send_signal(signal.SIGINT)
    assert (started.communicate()[0].strip(), started.returncode) == ("", 130)
    with pytest.raises(ProcessLookupError):
        os.kill(jvm, 0)
    assert list(tmp_path.glob("*.log")) == []


@pytest.mark.tier2
@pytest.mark.process
def test_the_commands_from_end_to_end(spark, tmp_path) -> None:
    """A load, its events archived and reported, its history replayed; each in a process of its own."""
    from spark.support import running

    spark.range(1)  # there is Java
    (tmp_path / "lines.txt").write_text("one\ntwo\n")
    archive, spark_log = str(tmp_path / "archive"), str(tmp_path / "logs")
    Path(spark_log).mkdir()
    with running(tmp_path / "forq.db", FORQ_EVENTS="on", FORQ_HISTORY="on") as server:
        told = {"FORQ_URL": server.url, "TMPDIR": spark_log}

        def did(*arguments: str) -> dict:
            done = command(*arguments, "--json", **told)
            assert (done.returncode, done.stderr) == (0, "")
            return json.loads(done.stdout)

        assert did("load", str(tmp_path / "lines.txt"), "q")["published"] == 2
        found = server.client.receive("q", max_messages=2)
        server.client.ack("q", [message.receipt for message in found])
        assert did("archive", archive)["rows"] == {"events": 6, "history": 2}
        assert did("compact", archive, "--before", "2100-01-01")["days"] == 0
        reported = did("report", str(tmp_path / "report"), "--archive", archive, "--queue-pages")
        assert (reported["events"], reported["queuePages"]) == (6, 1)
        assert "The queue needs no attention" in (tmp_path / "report" / "report.html").read_text()
        assert did("replay", "q", "--archive", archive)["published"] == 2
        assert did("replay", "q", "--archive", archive)["alreadyDone"] is True
        dead = did("replay", "q", "--from", "q", "--dead-letters", "--dry-run")
        assert (dead["matched"], dead["published"]) == ({"q": 2}, 0)
        assert os.listdir(spark_log) == []
        wrong = command("replay", "q", "--where", "nonsense = 1", **told)
        assert wrong.returncode == 1
        assert "nonsense" in wrong.stderr
        assert wrong.stderr.count("\n") == 2
        (log,) = Path(spark_log).iterdir()
        assert str(log) in wrong.stderr
