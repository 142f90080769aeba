"""What commands say about themselves, and that prose about their order says the same."""

import re
from pathlib import Path

import pytest

from forq_trio.model import limits
from forq_trio.model.command import Work
from forq_trio.model.commands import (
    COMMANDS,
    Ack,
    Claim,
    Command,
    CommandOrder,
    Configure,
    DropKeys,
    Produce,
    Purge,
    Traits,
    in_order,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Receipt
from forq_trio.model.queues.settings import QueueSettings, SettingsChange
from forq_trio.model.sqs.types import SqsChange
from forq_trio.storage.relational import run_batch
from forq_trio.storage.relational.row import write_settings

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def test_a_command_without_traits_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="Silent does not say its traits"):

        class Silent(Command[None], frozen=True, gc=False):
            queue: str


def test_the_traits_of_another_command_do_not_count() -> None:
    with pytest.raises(TypeError, match="AckTwice"):

        class AckTwice(Ack, frozen=True, gc=False):
            pass


def test_an_order_an_effect_and_a_weight_have_to_be_said() -> None:
    with pytest.raises(TypeError):
        Traits(CommandOrder.SEND)  # type: ignore[call-arg]


def test_what_weighs_is_a_number_or_counted() -> None:
    assert Produce("q", NewMessage("abc")).message_count() == 1
    assert Produce("q", NewMessage("abc")).content_bytes() == 3
    assert Produce("q", NewMessage("abc", attributes={"ab": "é" * 1_000_000})).content_bytes() == 4_000_005
    assert Ack("q", (Receipt(1, 2), Receipt(3, 4))).message_count() == 2
    assert Ack("q", ()).content_bytes() == 0


def test_what_sqs_says_of_a_queue_counts_as_content() -> None:
    """A small change writes all of it anew: many in one commit would write many megabytes."""
    change = SqsChange(full_name="", at_ms=1, tags={"a": "b"})
    assert Configure("q", SettingsChange(), change).content_bytes() == limits.SQS_DETAILS_BYTES_MAX
    assert Configure("q", SettingsChange(lease_ms=1)).content_bytes() == 0
    face = "\N{GRINNING FACE}"
    most = {f"{number:02d}{face * 126}": face * 256 for number in range(limits.SQS_TAGS_MAX)}
    longest = '"' * limits.SQS_ATTRIBUTE_BYTES_MAX
    details = SqsChange(full_name="", at_ms=1, tags=most, attributes={"Policy": longest, "Kms": longest})
    stored = QueueSettings().with_details(details)
    assert len(write_settings(stored).encode()) < limits.SQS_DETAILS_BYTES_MAX


def test_removals_in_steps_let_other_calls_go_first() -> None:
    assert {kind.traits.work for kind in (DropKeys, Purge)} == {Work.LONG}


def test_those_that_run_together_are_declared_in_one_module() -> None:
    """So their order is that of their lines, whichever module is imported first."""
    modules = {(kind.traits.order, kind.__module__) for kind in COMMANDS}
    assert sorted(order.name for order in CommandOrder) == sorted(order.name for order, _ in modules)


def test_an_engine_has_an_operation_for_every_command_but_claims() -> None:
    wanted = [kind for kind in reversed(COMMANDS) if kind is not Claim]
    assert in_order(wanted) == tuple(reversed(wanted))
    with pytest.raises(TypeError, match="Ping"):
        in_order(wanted[1:])
    with pytest.raises(TypeError, match="Claim"):
        in_order(COMMANDS)


def words(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").lower()


def test_prose_has_the_order_of_the_table() -> None:
    groups = [order.value for order in CommandOrder]
    assert groups[-1] == "claims"
    of_features = ", ".join(groups[groups.index("stages and publications") : groups.index("maintenance")])
    assert ", ".join(groups[:-1]).replace(of_features, "those of features") in words(run_batch.__doc__)
    assert ", ".join(groups) in words(ARCHITECTURE.read_text(encoding="utf-8"))
