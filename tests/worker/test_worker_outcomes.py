"""What becomes of messages: by what their handlers return and raise."""

from dataclasses import dataclass
from typing import TypedDict

import msgspec
import pytest
import trio

from forq_trio.model import limits
from forq_trio.worker import DeadLetter, Discard, Job, Retry, Worker


class Mail(msgspec.Struct):
    to: str
    size: int = 0


@dataclass
class Parcel:
    to: str


class Note(TypedDict):
    to: str


async def drained(face, function, *, queue: str = "emails", **options) -> Worker:
    app = Worker(face.methods)
    app.on(queue, **options)(function)
    await app.drain()
    return app


async def test_a_message_whose_handler_returns_is_gone(face) -> None:
    seen = []

    async def handle(mail: Mail, job: Job) -> None:
        seen.append((mail.to, job.queue, job.attempt, job.attributes, job.lost))

    await face.methods.produce("emails", '{"to": "anna"}', attributes={"region": "eu"})
    app = await drained(face, handle)
    assert seen == [("anna", "emails", 1, {"region": "eu"}, False)]
    assert app.stats["emails"].handled == 1
    assert (await face.methods.queue_stats("emails")).total == 0


READ = (
    (Mail, '{"to": "a", "size": 3}', Mail("a", 3)),
    (Parcel, '{"to": "a"}', Parcel("a")),
    (Note, '{"to": "a"}', {"to": "a"}),
    (dict, '{"x": [1]}', {"x": [1]}),
    (str, "plain, not JSON", "plain, not JSON"),
    (bytes, "\u00e4", "\u00e4".encode()),
    (list[int], "[1, 2]", [1, 2]),
)


async def test_the_annotation_says_how_the_content_is_read(face) -> None:
    seen = []
    for annotation, content, _ in READ:

        async def handle(payload) -> None:
            seen.append(payload)

        handle.__annotations__["payload"] = annotation
        await face.methods.produce("emails", content)
        await drained(face, handle)
    assert seen == [value for _, _, value in READ]


async def test_a_content_that_does_not_fit_is_a_dead_letter_at_once_with_the_place(face) -> None:
    async def handle(mail: Mail) -> None:
        raise AssertionError

    await face.methods.produce("emails", '{"to": "anna", "size": "big"}')
    app = await drained(face, handle)
    assert app.stats["emails"].dead == 1
    (letter,) = await face.methods.peek("emails-dlq")
    assert "$.size" in letter.failures[-1].reason
    assert letter.source_attempts == 1


async def test_an_error_is_a_failed_attempt_with_its_reason(face) -> None:
    async def handle(mail: dict) -> None:
        raise RuntimeError("no route to anna\0")

    sent = await face.methods.produce("emails", "{}")
    app = await drained(face, handle)
    assert app.stats["emails"].failed == 1
    message = await face.methods.message("emails", sent.id)
    assert message.status == "delayed"
    assert message.failures[-1].reason == "RuntimeError: no route to anna"


async def test_retries_come_after_the_delays_and_the_last_failure_is_final(face) -> None:
    attempts = []

    async def handle(mail: dict, job: Job) -> None:
        attempts.append((job.attempt, job.last_attempt))
        raise RuntimeError("no")

    await face.methods.produce("emails", "{}")
    for delay_ms in (5_000, 30_000, 1):
        app = await drained(face, handle, retry=[5, 30])
        await face.advance(delay_ms - 1)
        await drained(face, handle, retry=[5, 30])
        await face.advance(1)
    assert attempts == [(1, False), (2, False), (3, True)]
    assert app.stats["emails"].dead == 1
    assert (await face.methods.queue_stats("emails-dlq")).ready == 1


async def test_the_last_attempt_is_that_of_the_message_itself(face) -> None:
    seen = {}

    async def handle(mail: dict, job: Job) -> None:
        seen[job.queue] = job.last_attempt

    for queue, own, retry in (("one", 1, None), ("two", 2, None), ("three", 3, []), ("nine", 9, None)):
        await face.methods.configure(queue, max_attempts=2)
        await face.methods.produce(queue, "{}", max_attempts=own)
        await drained(face, handle, queue=queue, retry=retry)
    assert seen == {"one": True, "two": False, "three": True, "nine": False}


async def test_the_back_off_may_depend_on_the_type_of_the_error(face) -> None:
    async def handle(mail: dict) -> None:
        raise ConnectionResetError("gone")

    sent = await face.methods.produce("emails", "{}")
    await drained(face, handle, retry={OSError: [7], Exception: [1]})
    message = await face.methods.message("emails", sent.id)
    assert message.process_after - message.failures[-1].at == 7_000


OUTCOMES = (
    (Retry(9), "delayed", "retry"),
    (Retry(9, "rate limit"), "delayed", "rate limit"),
    (DeadLetter("no such customer"), "dead", "no such customer"),
    (ValueError("bad"), "dead", "ValueError: bad"),
)


@pytest.mark.parametrize("raised", [True, False])
async def test_outcomes_are_returned_or_raised(face, raised) -> None:
    async def handle(number: int) -> object:
        outcome, _, _ = OUTCOMES[number]
        if raised:
            raise outcome
        return outcome

    for number, (_, status, reason) in enumerate(OUTCOMES):
        queue = f"q{number}"
        sent = await face.methods.produce(queue, str(number))
        await drained(face, handle, queue=queue, dead=(ValueError,))
        message = await face.methods.message(f"{queue}-dlq" if status == "dead" else queue, sent.id)
        assert message.failures[-1].reason == reason


async def test_a_discarded_message_is_gone_and_not_called_failed(face, caplog) -> None:
    async def handle(mail: dict) -> None:
        raise Discard("sent before")

    sent = await face.methods.produce("emails", "{}")
    app = await drained(face, handle)
    assert [each.getMessage() for each in caplog.records] == [f"emails: {sent.id} is discarded: sent before"]
    assert app.stats["emails"].discarded == 1
    assert (await face.methods.queue_stats("emails")).total == 0


async def test_the_one_error_of_a_nursery_counts_as_itself(face) -> None:
    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("inside")

    async def handle(mail: dict) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)

    await face.methods.produce("emails", "{}")
    app = await drained(face, handle, dead=(ValueError,))
    assert app.stats["emails"].dead == 1


async def test_a_batch_is_one_call_and_each_message_has_its_outcome(face) -> None:
    calls = []

    async def handle(mails: list[str], jobs: list[Job]) -> list[object]:
        calls.append((mails, [job.content for job in jobs]))
        return [None, Retry(5), DeadLetter("no")][: len(mails)]

    for content in "abc":
        await face.methods.produce("emails", content)
    app = await drained(face, handle, batch=50)
    assert calls == [(["a", "b", "c"], ["a", "b", "c"])]
    stats = app.stats["emails"]
    assert (stats.handled, stats.failed, stats.dead) == (1, 1, 1)


async def test_what_handlers_send_is_handled_too(face) -> None:
    app = Worker(face.methods)
    seen = []

    @app.on("first")
    async def first(number: int) -> None:
        await second.later(number + 1, key="one")

    @app.on("second")
    async def second(number: int) -> None:
        seen.append(number)

    await app.send("first", 1)
    assert await app.drain() == 2
    assert seen == [2]


async def test_a_payload_that_the_handler_would_not_take_is_refused_by_the_sender(face) -> None:
    app = Worker(face.methods)

    @app.on("emails")
    async def handle(mail: Mail) -> None: ...

    with pytest.raises(msgspec.ValidationError):
        await app.send("emails", {"to": 7})
    await app.send("emails", Mail("anna"), delay=60)
    assert (await face.methods.queue_stats("emails")).delayed == 1


async def test_middleware_is_around_each_call(face) -> None:
    app, seen = Worker(face.methods), []

    @app.middleware
    async def outer(job: Job, call_next) -> object:
        seen.append("before")
        result = await call_next()
        seen.append("after")
        return result

    @app.on("emails")
    async def handle(mail: str) -> None:
        seen.append(mail)

    await app.send("emails", "anna")
    await app.drain()
    assert seen == ["before", "anna", "after"]


async def test_a_handler_may_want_only_some_messages(face) -> None:
    seen = []

    async def handle(mail: str) -> None:
        seen.append(mail)

    for mail, region in (("a", "eu"), ("b", "us"), ("c", "eu")):
        await face.methods.produce("emails", mail, attributes={"region": region})
    await drained(face, handle, where={"region": "eu"}, concurrency=1)
    assert seen == ["a", "c"]
    assert (await face.methods.queue_stats("emails")).ready == 1


class Unfinished:
    """A source whose first claims end before they have looked at the whole queue, as on a long one with `where`."""

    def __init__(self, source, claims: int) -> None:
        self._source = source
        self.claims = claims

    def __getattr__(self, name: str):
        return getattr(self._source, name)

    async def receive(self, queue: str, **options):
        if self.claims:
            self.claims -= 1
            trio.lowlevel.current_clock().jump(limits.DEFERRED_CLAIM_SECONDS)
            return []
        return await self._source.receive(queue, **options)


async def test_a_claim_that_has_not_seen_the_whole_queue_is_no_sign_that_it_is_empty(face) -> None:
    seen: list[str] = []
    app = Worker(Unfinished(face.methods, 3))

    @app.on("q", where={"region": "eu"})
    async def handle(content: str) -> None:
        seen.append(content)

    await face.methods.produce("q", "far behind", attributes={"region": "eu"})
    await app.drain()
    assert seen == ["far behind"]


class Slow(Retry):
    """An outcome of the program's that does not call the `__init__` of ours."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Refused(DeadLetter):
    def __init__(self, code: object) -> None:
        super().__init__("refused")
        self.reason = code  # type: ignore[assignment]


class Later(Retry):
    def __init__(self) -> None:
        super().__init__()
        self.delay = "soon"


@pytest.mark.parametrize(
    ("outcome", "reason", "dead"),
    [(Slow(3), "retry", False), (Refused(404), "404", True), (Later(), "ValueError: delay: 'soon': ", False)],
)
async def test_an_outcome_of_the_programs_own_ends_no_worker(face, outcome, reason, dead) -> None:
    async def handle(content: str) -> None:
        raise outcome

    sent = await face.methods.produce("q", "x")
    app = Worker(face.methods)
    app.on("q", retry=[60])(handle)
    await app.drain()
    message = await face.methods.message("q-dlq" if dead else "q", sent.id)
    assert message.failures[-1].reason.startswith(reason)
