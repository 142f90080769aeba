"""Routers, and the order of middleware."""

import pytest

from forq_trio.worker import CallNext, Job, Router, Worker, WorkerSetupError


async def handle(content: str) -> None: ...


async def another(content: str) -> None: ...


def line_of(function) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno}"


async def test_handlers_of_a_router_have_its_prefix_and_send_once_it_is_included() -> None:
    app, shop, parts, seen = Worker(), Router(), Router(), []

    @shop.on("orders")
    async def order(number: int, job: Job) -> None:
        seen.append((job.queue, number))
        await pack.later(number + 1)

    @parts.on("pack")
    async def pack(number: int, job: Job) -> None:
        seen.append((job.queue, number))

    with pytest.raises(RuntimeError, match="no Worker has included its router"):
        await order.later(1)
    with pytest.raises(RuntimeError, match="no Worker has included its router"):
        order.later_blocking(1)
    shop.include(parts, prefix="parts.")
    app.include(shop, prefix="shop.")
    async with app.testing() as t:
        await order.later(1)
        assert await t.drain() == 2
        assert (t.sent("shop.orders"), t.sent("shop.parts.pack")) == ([1], [2])
    assert seen == [("shop.orders", 1), ("shop.parts.pack", 2)]


def test_a_clash_of_queues_is_an_error_of_the_include() -> None:
    app, router = Worker(), Router()
    app.on("shop.orders")(handle)
    router.on("letters")(handle)
    router.on("orders")(another)
    with pytest.raises(WorkerSetupError) as refused:
        app.include(router, prefix="shop.")
    assert str(refused.value).startswith(
        f"{line_of(another)}: another: the queue 'shop.orders' has a handler"
    )
    assert line_of(handle) in str(refused.value)
    assert [*app.handlers] == ["shop.orders"]
    app.include(router, prefix="store.")
    assert [*app.handlers] == ["shop.orders", "store.letters", "store.orders"]


def test_a_name_that_no_queue_can_have_is_an_error_of_the_include() -> None:
    app, router = Worker(), Router()
    router.on("orders")(handle)
    with pytest.raises(WorkerSetupError, match=r"'a b\.orders': ") as refused:
        app.include(router, prefix="a b.")
    assert str(refused.value).startswith(line_of(handle))


def test_a_router_is_included_once_and_whole() -> None:
    app, router, late = Worker(), Router(), Router()
    app.include(router)
    for including, included in ((app, router), (app, Worker()), (router, late), (late, late)):
        with pytest.raises(WorkerSetupError, match="include"):
            including.include(included)
    with pytest.raises(WorkerSetupError, match="include it below its handlers"):
        router.on("orders")(handle)


@pytest.mark.parametrize("in_thread", [False, True])
async def test_middleware_is_called_in_the_order_of_its_registration(in_thread: bool) -> None:
    app, router, said = Worker(), Router(), []

    async def in_loop(content: str) -> str:
        said.append("handler")
        return "result"

    def plain(content: str) -> str:
        said.append("handler")
        return "result"

    def around(name: str):
        async def middleware(job: Job, call_next: CallNext) -> object:
            said.append(name)
            result = await call_next()
            said.append(f"{name} {result}")
            return result

        return middleware

    router.middleware(around("router"))
    handler = router.on("q")(plain if in_thread else in_loop)
    app.on("other")(in_loop)
    app.middleware(around("first"))
    app.include(router)
    app.middleware(around("second"))
    async with app.testing() as t:
        await handler.later("x")
        await t.drain()
        assert said == [
            "first",
            "second",
            "router",
            "handler",
            "router result",
            "second result",
            "first result",
        ]
        said.clear()
        await app.send("other", "x")
        await t.drain()
        assert said == ["first", "second", "handler", "second result", "first result"]


async def test_an_error_in_middleware_is_one_of_the_attempt() -> None:
    app, reached = Worker(), []

    @app.middleware
    async def refuse(job: Job, call_next: CallNext) -> object:
        if job.attempt == 1:
            raise PermissionError("not yet")
        return await call_next()

    @app.on("q", retry=[60])
    async def handle(content: str) -> None:
        reached.append(content)

    async with app.testing() as t:
        sent = await handle.later("x")
        await t.drain()
        assert (await t.broker.message("q", sent.id)).last_error == "PermissionError: not yet"
        assert reached == []
        await t.advance(60)
        await t.drain()
    assert reached == ["x"]


def test_middleware_is_async() -> None:
    with pytest.raises(TypeError, match="async function"):
        Router().middleware(lambda job, call_next: None)  # type: ignore[arg-type, return-value]
