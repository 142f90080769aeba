"""The trace of a message as its attribute says, and whether somebody has set up OpenTelemetry."""

import subprocess
import sys

import opentelemetry.trace
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import get_current_span

from forq_trio.model import limits
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.traces import is_tracestate, sampled_trace, sdk_is_set_up
from forq_trio.model.tracing import carried, context_in, with_context
from support.processes import WAIT_SECONDS_MAX
from support.spans import PARENT, SPAN, TRACE


@pytest.mark.parametrize(
    ("parent", "trace"),
    [
        (PARENT["traceparent"], TRACE),
        (f"00-{TRACE}-{SPAN}-03", TRACE),
        (f"00-{TRACE}-{SPAN}-00", None),
        (f"00-{TRACE}-{SPAN}-02", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"01-{TRACE}-{SPAN}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}-01\n", None),
        (f'00-{TRACE[:-1]}"-{SPAN}-01', None),
        ("", None),
    ],
)
def test_a_trace_that_is_stored_is_read_from_its_parent(parent: str, trace: str | None) -> None:
    assert sampled_trace({"traceparent": parent}) == trace


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("a=1", True),
        ("a=1, b@c=x y,\t0d/e*_-@f=~", True),
        (",".join(f"k{n}=1" for n in range(32)), True),
        (",".join(f"k{n}=1" for n in range(33)), False),
        ("a=" + "x" * 256, True),
        ("a=" + "x" * 257, False),
        ("a=1" + " " * 510, False),
        ("a=1 " + "x" * 8_000, False),
        ("a=1\nb=2", False),
        ("A=1", False),
        ("a=é", False),
        ("a=", False),
        ("", False),
    ],
)
def test_a_tracestate_is_read_if_it_is_one(text: str, right: bool) -> None:
    """What is none costs OpenTelemetry time in the square of its length, or a line of the log for each."""
    assert is_tracestate(text) is right
    state = get_current_span(context_in(PARENT | {"tracestate": text})).get_span_context().trace_state
    assert bool(state) is right


def test_without_a_parent_there_is_no_trace() -> None:
    assert sampled_trace(None) is sampled_trace({}) is sampled_trace({"tracestate": "a=1"}) is None


def test_a_context_goes_round_through_attributes() -> None:
    state = {"tracestate": "a=1,b=2"}
    assert carried(context_in(PARENT | state)) == PARENT | state
    assert carried(context_in({"traceparent": "?"} | state)) == {}
    long = {"tracestate": ",".join(f"k{number}={'v' * 200}" for number in range(6))}
    assert len(long["tracestate"]) > limits.ATTRIBUTE_VALUE_LENGTH_MAX
    assert carried(context_in(PARENT | long)) == PARENT


def test_a_message_gets_as_much_of_a_context_as_it_has_place_for() -> None:
    context = PARENT | {"tracestate": "a=1"}
    message = NewMessage("x", attributes={f"a{number}": "x" for number in range(9)})
    assert with_context(message, context, {}).attributes == message.attributes | PARENT
    assert with_context(NewMessage("x"), context, {}).attributes == context
    assert with_context(message, {}, {}) is message


def test_the_context_around_a_send_gives_way_to_that_of_the_send() -> None:
    outer = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=1"}
    sending = {"traceparent": f"00-{TRACE}-1{SPAN[1:]}-01", "tracestate": "a=1"}
    passed_on = NewMessage("x", attributes={"b": "c"} | outer)
    assert with_context(passed_on, sending, outer).attributes == {"b": "c"} | sending
    other = NewMessage("x", attributes={"traceparent": f"00-{TRACE}-2{SPAN[1:]}-01"})
    assert with_context(other, sending, outer) is other


def test_a_tracestate_without_a_parent_is_ignored() -> None:
    alone = NewMessage("x", attributes={"b": "c", "tracestate": "other=1"})
    assert with_context(alone, PARENT, {}).attributes == {"b": "c"} | PARENT
    whole = PARENT | {"tracestate": "a=1"}
    assert with_context(alone, whole, {}).attributes == {"b": "c"} | whole
    assert with_context(alone, {}, {}) is alone
    full = NewMessage("x", attributes={f"a{number}": "x" for number in range(9)} | {"tracestate": "other=1"})
    assert with_context(full, PARENT, {}).attributes == {f"a{number}": "x" for number in range(9)} | PARENT


def test_an_sdk_counts_once_it_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not sdk_is_set_up()
    monkeypatch.setattr(opentelemetry.trace, "_TRACER_PROVIDER", TracerProvider())
    assert sdk_is_set_up()


WITHOUT = """
import sys
import forq_trio.app, forq_trio.cli.work, forq_trio.worker.posting
from forq_trio import AsyncForqClient, ForqClient, open_blocking_broker
from forq_trio.model.traces import sdk_is_set_up
with open_blocking_broker("memory:") as broker:
    broker.produce("q", "x")
    broker.receive("q")
print(sdk_is_set_up(), *(name for name in sys.modules if "opentelemetry" in name or "tracing" in name))
"""


def test_without_an_sdk_nothing_of_it_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, check=True
    )
    assert done.stdout == "False\n"
