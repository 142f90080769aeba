"""In which order messages come: priority, first or last in first out, at random."""

from forq_trio import NewMessage

from .words import contents

MANY = [str(number) for number in range(40)]


async def test_higher_priorities_first_and_each_in_order(face) -> None:
    for content, priority in [("a", 100), ("b", 0), ("c", 1_000), ("d", None), ("e", 1_000)]:
        await face.send(content, **({} if priority is None else {"priority": priority}))
    assert contents(await face.peek()) == ["c", "e", "a", "d", "b"]
    received = await face.receive(most=10)
    assert contents(received) == ["c", "e", "a", "d", "b"]
    assert [delivery.priority for delivery in received] == [1_000, 1_000, 100, 100, 0]


async def test_priorities_of_a_batch(face) -> None:
    await face.send_many([NewMessage("low", priority=1), NewMessage("high", priority=2), NewMessage("usual")])
    assert contents(await face.receive(most=3)) == ["usual", "high", "low"]


async def test_a_message_that_comes_back_keeps_its_priority(face) -> None:
    await face.send("usual")
    await face.send("high", priority=900)
    await face.nack((await face.take()).receipt, delay_ms=10)
    await face.send("later", priority=900)
    await face.advance(10)
    assert contents(await face.receive(most=3)) == ["high", "later", "usual"]


async def test_the_newest_first_by_name(face) -> None:
    for content in "abc":
        await face.send(content, "q_lifo")
    assert contents(await face.peek("q_lifo")) == ["c", "b", "a"]
    newest = await face.take("q_lifo")
    await face.send("d", "q_lifo")
    await face.release(newest.receipt, queue="q_lifo")
    assert contents(await face.receive("q_lifo", most=10)) == ["d", "c", "b", "a"]


async def test_the_newest_first_by_setting(face) -> None:
    await face.configure(order="lifo")
    for content, priority in [("a", 100), ("high", 200), ("b", 100), ("c", 100)]:
        await face.send(content, priority=priority)
    assert contents(await face.receive(most=10)) == ["high", "c", "b", "a"]


async def test_a_changed_order_holds_for_what_is_sent_from_then_on(face) -> None:
    await face.send("a")
    await face.send("b")
    await face.configure(order="lifo")
    await face.send("c")
    await face.send("d")
    assert contents(await face.receive(most=10)) == ["d", "c", "a", "b"]


async def test_random_messages_come_all_and_once(face) -> None:
    await face.send_many([NewMessage(content) for content in MANY])
    got = [contents(await face.receive(shuffle=True)) for _ in MANY[:20]]
    got.append(contents(await face.receive(most=100, shuffle=True)))
    flat = [content for each in got for content in each]
    assert sorted(flat, key=int) == MANY
    assert flat != MANY
    assert await face.has_nothing()


async def test_random_peeks_lease_nothing(face) -> None:
    await face.send_many([NewMessage(content) for content in MANY])
    looks = [contents(await face.peek(limit=40, shuffle=True)) for _ in range(2)]
    assert [sorted(look, key=int) for look in looks] == [MANY, MANY]
    assert looks[0] != looks[1]
    assert contents(await face.receive(most=40)) == MANY
