"""The dialect of Amazon SQS: beside our own routes, and beside other servers that speak it, in turns."""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from time import perf_counter, perf_counter_ns
from typing import Any, NamedTuple

from bench.load.api import Api, decode_batch, decode_message
from bench.load.generator import Address, Conversation, Load, Request, Series
from bench.load.sqs import REGION, SqsApi, received
from bench.scenarios.closed import repeat
from bench.scenarios.context import Context, Row, merged, spread
from bench.scenarios.handoff import STAMP_DIGITS, WAKE_UPS_PER_SECOND, Arrivals, stamped
from bench.targets.servers import KEY, ServerError
from bench.targets.sqs_servers import SQS_SERVERS
from forq_trio import ForqClient

BATCH = 10
"""The most messages of a batch of SQS."""

ROOT_KEY_ID = "forq"
OWN_ROUTES = "forq-trio, own routes"
_ROUNDS_MAX = 3  # there are many servers, and each has its turn in each round

Settle = Callable[[bytes], bytes | None]
"""Makes the request that settles what an answer to a receive has; None if it has nothing."""


class Spoken(NamedTuple):
    """The requests for one queue, in the protocol of its server."""

    send: Callable[[str], bytes]
    receive: bytes
    settle: Settle
    content: Callable[[bytes], str | None]  # of the message in an answer to a receive
    send_batch: bytes
    receive_batch: bytes
    settle_batch: Settle


class _Measured(NamedTuple):
    """A server under load. speak: makes a new queue. client: works through messages with a client for Python."""

    name: str
    durability: str
    address: Address
    speak: Callable[[str], Spoken]
    client: Callable[[str, int], list[float]]
    keeps_connections: bool = True


def sqs(context: Context) -> list[Row]:
    """Send, send + receive + delete, batches of 10, wake-ups and a client over SQS, in turns; medians of rounds."""
    with ExitStack() as stack:
        ours = stack.enter_context(context.server())
        dialect = SqsApi(ours.api.address, (ROOT_KEY_ID, KEY))
        measured = [
            _of_routes(context, ours.api, ours.durability),
            _of_sqs(context, "forq-trio, SQS", dialect, ours.durability),
        ]
        for start in SQS_SERVERS:
            try:
                other = stack.enter_context(start(context.data_dir))
            except ServerError as missing:
                context.say(f"SKIPPED {missing}")
                continue
            measured.append(
                _of_sqs(context, other.title, other.api, other.durability, other.keeps_connections)
            )
        for one in measured:  # none is measured cold: a JVM compiles what it does often
            _cycles(context, one, BATCH)
        rows: list[Row] = []
        settings = context.settings
        rounds = min(settings.rounds, _ROUNDS_MAX)
        for count in settings.connections:
            rows += _in_turns(context, measured, _sends, count, rounds)
            rows += _in_turns(context, measured, _cycles, count, rounds)
        for count in settings.batch_connections:
            rows += _in_turns(context, measured, _batches, count, rounds)
        rows += _in_turns(context, measured, _wake_ups, 2, 1)
        if importlib.util.find_spec("boto3") is None:
            context.say("SKIPPED the client: boto3 is not installed (extra: dev)")
            return rows
        return rows + _in_turns(context, measured, _client, 1, 1)


class _Round(NamedTuple):
    """What one server did in one round. count: of requests, or of messages that came through."""

    count: float
    seconds: float
    p50_ms: float
    p99_ms: float
    errors: int = 0


Work = Callable[[Context, _Measured, int], _Round]


def _in_turns(
    context: Context, measured: list[_Measured], work: Work, connections: int, rounds: int
) -> list[Row]:
    done: dict[str, list[_Round]] = {one.name: [] for one in measured}
    for _ in range(rounds):
        for one in measured:
            done[one.name].append(work(context, one, connections))
    rates = {name: [each.count / each.seconds for each in found] for name, found in done.items()}
    rows = []
    for one in measured:
        own = [rate / other for rate, other in zip(rates[one.name], rates[OWN_ROUTES], strict=True)]
        rows.append(
            {
                "work": work.__doc__,
                "connections": connections,
                "server": one.name,
                "per_second": round(spread(rates[one.name])["median"], 1),
                "of_own_routes": round(spread(own)["median"], 2),
                "p50_ms": round(spread([each.p50_ms for each in done[one.name]])["median"], 2),
                "p99_ms": round(spread([each.p99_ms for each in done[one.name]])["median"], 2),
                "errors": sum(each.errors for each in done[one.name]),
                "durability": one.durability,
            }
        )
    return rows


def _sends(context: Context, one: _Measured, connections: int) -> _Round:
    """sends"""
    spoken, series = one.speak(context.queue("sqs")), Series("send")
    request = Request(spoken.send(context.content), series)
    return _drive(context, one, [series], lambda: repeat(request), connections)


def _cycles(context: Context, one: _Measured, connections: int) -> _Round:
    """requests of send + receive + delete"""
    spoken, steps = one.speak(context.queue("sqs")), _steps()
    send = spoken.send(context.content)
    return _drive(
        context, one, steps, lambda: _cycling(send, spoken.receive, spoken.settle, steps), connections
    )


def _batches(context: Context, one: _Measured, connections: int) -> _Round:
    """messages through, in batches of 10"""
    spoken, steps = one.speak(context.queue("sqs")), _steps()
    done = _drive(
        context,
        one,
        steps,
        lambda: _cycling(spoken.send_batch, spoken.receive_batch, spoken.settle_batch, steps),
        connections,
    )
    return done._replace(count=steps[-1].latency.count * BATCH)


def _steps() -> list[Series]:
    return [Series("send"), Series("receive"), Series("delete")]


def _cycling(send: bytes, receive: bytes, settle: Settle, steps: list[Series]) -> Conversation:
    """Send, receive, settle, for ever. A connection sends before it receives, so there is always something."""
    sent, taken = Request(send, steps[0]), Request(receive, steps[1])
    while True:
        yield sent
        answer = yield taken
        settling = settle(answer.body) if answer.status == 200 else None
        if settling is not None:
            yield Request(settling, steps[2])


def _drive(
    context: Context,
    one: _Measured,
    steps: list[Series],
    conversation: Callable[[], Conversation],
    connections: int,
) -> _Round:
    settings = context.settings
    with Load(one.address, keeps_connections=one.keeps_connections) as load:
        load.add_all(conversation() for _ in range(connections))
        seconds = load.run(
            settings.seconds, warm_up_seconds=settings.warm_up_seconds, answers_max=settings.answers_max
        )
    return _round(steps, seconds)


def _round(steps: list[Series], seconds: float) -> _Round:
    total = merged("all", steps)
    p50, p99 = (total.latency.percentile_ns(part) / 1e6 for part in (50, 99))
    return _Round(total.latency.count, seconds, p50, p99, sum(total.errors.values()))


def _wake_ups(context: Context, one: _Measured, connections: int) -> _Round:
    """messages to a long poll that waits"""
    settings, spoken = context.settings, one.speak(context.queue("sqs"))
    steps, underway, arrivals = _steps(), Series("wake-up"), Arrivals(WAKE_UPS_PER_SECOND)

    def sending() -> Conversation:
        while True:
            due_ns = arrivals.next_ns()
            yield Request(spoken.send(stamped(due_ns, context.content)), steps[0], due_ns)

    def consuming(load: Load) -> Iterator[Any]:
        receive = Request(spoken.receive, steps[1])
        while True:
            answer = yield receive
            content = spoken.content(answer.body) if answer.status == 200 else None
            if content is None:
                continue
            sent_ns = int(content[:STAMP_DIGITS])
            if sent_ns >= load.record_from_ns:
                underway.latency.record(perf_counter_ns() - sent_ns)
            settling = spoken.settle(answer.body)
            if settling is not None:
                yield Request(settling, steps[2])

    with Load(one.address, keeps_connections=one.keeps_connections) as load:
        load.add(consuming(load))  # type: ignore[arg-type]
        load.add(sending())
        seconds = load.run(
            settings.handoff_seconds,
            warm_up_seconds=settings.warm_up_seconds,
            answers_max=settings.answers_max,
        )
    return _round([underway], seconds)._replace(errors=_round(steps, seconds).errors)


def _client(context: Context, one: _Measured, connections: int) -> _Round:
    """messages through, by one client for Python (boto3; for our own routes ForqClient)"""
    count = max(context.settings.feature_messages // 50, 1)
    started = perf_counter()
    took = sorted(one.client(context.queue("sqs"), count))
    seconds = perf_counter() - started
    return _Round(count, seconds, took[count // 2] * 1e3, took[count * 99 // 100] * 1e3)


def _of_routes(context: Context, api: Api, durability: str) -> _Measured:
    def speak(queue: str) -> Spoken:
        def settle_batch(body: bytes) -> bytes | None:
            messages = decode_batch(body)
            return api.ack_batch(queue, messages) if messages else None

        return Spoken(
            lambda content: api.send(queue, content),
            api.receive(queue),
            lambda body: api.ack(queue, decode_message(body)),
            lambda body: decode_message(body).content,
            api.send_batch(queue, [context.content] * BATCH),
            api.receive_batch(queue, BATCH, wait_ms=20_000),
            settle_batch,
        )

    def work(queue: str, count: int) -> list[float]:
        with ForqClient(api.url, api.key) as client:

            def once() -> None:
                client.produce(queue, context.content)
                (delivery,) = client.receive(queue)
                client.ack(queue, [delivery.receipt])

            return _times(once, count)

    return _Measured(OWN_ROUTES, durability, api.address, speak, work)


def _of_sqs(
    context: Context, name: str, api: SqsApi, durability: str, keeps_connections: bool = True
) -> _Measured:
    def speak(queue: str) -> Spoken:
        url = api.create(queue)

        def settle(body: bytes) -> bytes | None:
            messages = received(body)
            return api.delete(url, messages[0]) if messages else None

        def settle_batch(body: bytes) -> bytes | None:
            messages = received(body)
            return api.delete_batch(url, messages) if messages else None

        def content(body: bytes) -> str | None:
            messages = received(body)
            return messages[0].body if messages else None

        return Spoken(
            lambda content: api.send(url, content),
            api.receive(url),
            settle,
            content,
            api.send_batch(url, [context.content] * BATCH),
            api.receive(url, BATCH),
            settle_batch,
        )

    def work(queue: str, count: int) -> list[float]:
        import boto3

        client = boto3.client(
            "sqs",
            endpoint_url=f"http://{api.address.host}:{api.address.port}",
            region_name=REGION,
            aws_access_key_id=api.key[0],
            aws_secret_access_key=api.key[1],
        )
        url = client.create_queue(QueueName=queue)["QueueUrl"]

        def once() -> None:
            client.send_message(QueueUrl=url, MessageBody=context.content)
            (message,) = client.receive_message(QueueUrl=url)["Messages"]
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

        try:
            return _times(once, count)
        finally:
            client.close()

    return _Measured(name, durability, api.address, speak, work, keeps_connections)


def _times(once: Callable[[], None], count: int) -> list[float]:
    """The seconds of each of so many calls."""
    found = []
    for _ in range(count):
        started = perf_counter()
        once()
        found.append(perf_counter() - started)
    return found
