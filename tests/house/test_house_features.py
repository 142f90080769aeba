"""How many files know of each optional feature outside of its own: a bound that may only fall.

Who reads send, claim and ack meets what is named there. A feature is known by the words that nothing else uses.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Feature:
    """One optional feature, as it is found in the code."""

    words: str  # a pattern of what only this feature's code says
    own: str  # a pattern of the paths, below forq_trio, of its own files
    outside_max: int  # how many other files may know it; lower it when fewer do


FEATURES = {
    "bound tables": Feature(
        r"self\.bound\b|broker\.bound|\.bound\.|table_of\(|of_table|is_bound_to|bound_tables|check_all_unbound",
        r"(broker|storage)/bound|pages/binding|(^|/)pgq/",
        6,
    ),
    "leased pages": Feature(
        r"moved_page|moved page|moves_staged|_moved\b", r"moved_|leased_pages|consumers|migrations/", 8
    ),
    "shares": Feature(r"\bholder\b|\bHolder(Kind)?\b|\bHOLDER\b", r"budget|holders|transport/", 8),
    "keys": Feature(r"\bOffer\w*\b|offers?\(", r"offers|keys|delayed/", 11),
    # Not: to reschedule a message or a task, what is scheduled (pgq's scheduled_for, a backup that nobody asked for), a
    # scheduler. `delayed` is a layer above, whose recurring messages have a cron of their own.
    "schedules": Feature(r"(?<![Rr]e)[Ss]chedule(?![dr])", r"schedule|delayed/|migrations/", 25),
    # Its own files are those of the two logs, too, of which it is one, and those of results, which it keeps. Not: the
    # monitor's, for charts, and pgq's, of its tables.
    "history": Feature(
        r"(?<!monitor\.)\bhistory\b",
        r"history|finished|results|(^|/)logs[./]|log_reader|(^|/)retention|(^|/)pgq/|monitor/|sparklines|migrations/",
        42,
    ),
    # Not: the actions of SQS, and the batches of the writer.
    "message batches": Feature(
        r"\bmessage_batch|\bMessageBatch|\bBatchMessage|\badd_to_batch|\bBatchSender",
        r"message_batches|pages/batches|migrations/",
        13,
    ),
    # Its own files are those of Django's tasks, too, which may be written into one.
    "outboxes": Feature(r"[Oo]utbox", r"outbox|migrations/|django/", 13),
    # Traces, and the exemplars that name them in metrics.
    "traces": Feature(
        r"\b[Tt]racing\b|traceparent|sampled_trace|[Ee]xemplar|sdk_is_set_up",
        r"tracing|traces|exemplars|metrics",
        5,
    ),
    "pipelines": Feature(
        r"\b[Ss]tage[sd]?\b|\bPublish\b", r"publishing|pipelines|staging|apps\.py|migrations/", 17
    ),
    "sqs": Feature(r"[Ss]qs|SQS", r"sqs", 9),
    # Messages that are removed in process, and who hears of it; `cancel` with `running` is one command among others.
    "withdrawn messages": Feature(r"Withdraw|\.withdrawn\b", r"withdrawn|workers(\.py|/)", 8),
    # Its own files are those of the history, too, where results are kept.
    "results": Feature(
        r"AckWithResult|AckResult|MessageResult|message_result|keep_result",
        r"result|history|finished|(^|/)logs[./]|log_reader|migrations/",
        8,
    ),
}


def files_outside(root: Path, feature: Feature) -> list[str]:
    """The files of the package that know a feature and are not its own."""
    package = root / "forq_trio"
    paths = [path for kind in ("*.py", "*.sql") for path in package.rglob(kind)]
    return sorted(
        str(path.relative_to(package))
        for path in paths
        if not path.is_relative_to(package / "demo")  # which shows all of them, and is read for that
        and not re.search(feature.own, str(path.relative_to(package)))
        and re.search(feature.words, path.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("name", FEATURES)
def test_no_more_files_know_a_feature(root, name) -> None:
    feature = FEATURES[name]
    found = files_outside(root, feature)
    assert len(found) == feature.outside_max, f"{len(found)} files know {name}: {found}"


def test_a_file_that_knows_a_feature_is_found(tmp_path) -> None:
    package = tmp_path / "forq_trio" / "storage"
    package.mkdir(parents=True)
    (package / "moved_pages.py").write_text("moved_pages = 1\n")
    (package / "claim.py").write_text("leave(moved_page)\n")
    (package / "claim.sql").write_text("SELECT 1 -- no moved row\n")
    assert files_outside(tmp_path, FEATURES["leased pages"]) == ["storage/claim.py"]
