"""The world that tests and pictures look at has what they look for, and is the same for the same seed."""

import random

from forq_trio import ForqClient
from support.real_server import SECRET
from support.showcase import ENEMIES, PLANS, _Maker


def contents(seed: int) -> list[str]:
    makers = [_Maker(plan, random.Random(f"{seed} {plan.name}")) for plan in PLANS]
    return [message.content for maker in makers for message in maker.messages(20)]


def test_a_seed_makes_the_same_messages_again() -> None:
    assert contents(1) == contents(1)
    assert contents(1) != contents(2)


def test_the_world_has_every_state_and_an_enemy(world) -> None:
    with ForqClient(world.url, SECRET) as client:
        queues = {queue.queue: queue for queue in client.queues()}
        assert len(queues) >= 30
        for state in ("ready", "delayed", "processing", "held"):
            assert sum(getattr(queue, state) for queue in queues.values()) > 50, state
        assert [name for name, queue in queues.items() if queue.paused] == ["imports.csv"]
        dead = client.search_dead_letters("guestbook-dlq", limit=100).messages
        assert {message.last_error for message in dead} == set(ENEMIES)
        assert {message.group for message in dead} <= set(ENEMIES)
        reasons = {
            message.failure_reason
            for queue in ("search.reindex-dlq", "orders.charge-dlq")
            for message in client.search_dead_letters(queue).messages
        }
        assert reasons == {"queue_full", "max_attempts_reached"}
        assert {token.name for token in client.tokens()} >= {"ops", "grafana"}
