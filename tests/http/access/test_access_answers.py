"""What the answer of a change shows: what its scope may read, and that is no content, nor what tells of one.

`browse` and `consume` read contents, and `admin` includes both. The other scopes change things, and their holders may
not look at them: not at messages, not at schedules, not at the filters of others, nor at how many messages match one.
"""

from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest
from msgspec import Struct

from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import Endpoint
from forq_trio.model.member_names import json_name
from forq_trio.model.schedules.bodies import NextRuns
from forq_trio.model.schedules.types import NextRun, SavedRun, Schedule
from forq_trio.storage.engine import EngineSettings
from oracle.engine import MemoryEngine
from support.endpoints import all_endpoints
from support.forq_api import SECRET, Api, open_api

from .conftest import Holder, Tokens

WITHOUT_LOOKING = (Scope.PRODUCE, Scope.CANCEL, Scope.REDRIVE, Scope.SCHEDULE)
NO_LOOKS = {NextRun: "times of a timing that is in the request; nothing stored is read"}
"""Types that endpoints of both kinds answer with, and why that shows nothing."""
CONTENTS = {
    "content",
    "attributes",
    "filter",
    "last_error",
    "last_run",
    "runs",
    "matched",
    "moved",
    "failures",
}
"""Members that have contents, or tell of them."""

REDRIVEN = "redriven"
"""The queue whose dead letters are redriven, one a second."""

CANARY = "canary"
"""In all that is stored and only shown to those who may look."""


def changes() -> dict[str, Endpoint[Any]]:
    """The endpoints that scopes open whose holders may not look."""
    return {each.name: each for each in all_endpoints() if each.scope in WITHOUT_LOOKING}


def looks() -> dict[str, Endpoint[Any]]:
    return {each.name: each for each in all_endpoints() if each.scope is Scope.BROWSE}


def types_in(kind: Any) -> Iterator[type[Struct]]:
    """The structs that a value of this type may have in it."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        yield kind
        for each in get_type_hints(kind).values():
            yield from types_in(each)
    for each in get_args(kind):
        yield from types_in(each)


def answered(endpoint: Endpoint[Any]) -> set[type[Struct]]:
    return {
        found
        for answer in endpoint.answers
        for body in (answer.body, answer.full)
        if body not in (None, NoneType)
        for found in types_in(body)
    }


def test_a_change_is_answered_with_nothing_that_a_look_is() -> None:
    shown = {each for look in looks().values() for each in answered(look)}
    for name, change in changes().items():
        assert answered(change) & shown <= NO_LOOKS.keys(), name


def test_no_member_of_its_answer_has_contents() -> None:
    for name, change in changes().items():
        members = {
            member for each in answered(change) if each is not NextRuns for member in each.__struct_fields__
        }
        assert members & CONTENTS == set(), name


def test_the_checker_finds_a_look_and_contents_however_deep_they_are() -> None:
    found = answered(looks()["listSchedules"])
    assert {Schedule, SavedRun} <= found
    assert {"content", "last_run"} <= CONTENTS & set(Schedule.__struct_fields__)


class Stored:
    """A server in which everything has the canary, and the ids that its paths need."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.owner = Holder(api, SECRET)
        self.ids: dict[str, str] = {}

    async def ask(self, method: str, path: str, body: str = "") -> dict[str, Any]:
        status, answer = await self.owner.ask(method, path, body.encode())
        assert status < 300, (method, path, status, answer)
        return answer

    async def dead_letters(self, queue: str, count: int, message: str) -> None:
        await self.ask("PUT", f"{queue}/settings", '{"maxAttempts": 1}')
        for _ in range(count):
            await self.ask("POST", f"{queue}/messages", f"{{{message}}}")
            receipt = (await self.ask("GET", f"{queue}/messages"))["receipt"]
            given_up = f'{{"receipts": ["{receipt}"], "reason": "{CANARY}"}}'
            await self.ask("POST", f"{queue}/messages/nack", given_up)

    async def fill(self) -> None:
        """Messages in all states, a keyed one, dead letters, a history, a schedule, a redrive, a stage, an app.

        What goes on by itself is of another queue (REDRIVEN), and the lease has its message before others are sent: so
        it does not matter how far the redrive is.
        """
        message = f'"content": "{CANARY}", "attributes": {{"{CANARY}": "{CANARY}"}}'
        await self.dead_letters("q", 3, message)
        await self.dead_letters(REDRIVEN, 10, message)
        await self.ask("POST", "q/messages", f"{{{message}}}")
        generation = (await self.ask("PUT", "q/consumers/c", "{}"))["generation"]
        await self.ask(
            "POST", "q/consumers/c/lease", f'{{"generation": {generation}, "number": 1, "maxMessages": 1}}'
        )
        await self.ask("POST", "q/messages", f"{{{message}}}")
        receipt = (await self.ask("GET", "q/messages"))["receipt"]
        await self.ask("POST", "q/messages/ack", f'{{"receipts": ["{receipt}"]}}')
        finished = (await self.ask("GET", "q/history"))["messages"]
        await self.ask("PUT", "q/keys/k", f'{{{message}, "delayMs": 1000}}')
        waiting = (await self.ask("POST", "q/messages/batch", f'{{"messages": [{{{message}}}]}}'))["results"]
        letters = (await self.ask("GET", "q-dlq/dead-letters"))["messages"]
        schedule = f'{{"queue": "q", {message}, "every": "1h"}}'
        await self.ask("PUT", "/api/v1/schedules/s", schedule)
        await self.ask("POST", "/api/v1/schedules/s/run")
        wanted = f'{{"filter": {{"text": "{CANARY}"}}, "ratePerSecond": 1}}'
        task = await self.ask("POST", f"{REDRIVEN}-dlq/dead-letters/redrives", wanted)
        await self.ask("POST", "q/stages/s/pages/0", f"{{{message}}}\n")
        await self.ask("POST", "q/stages/t/pages/0", f"{{{message}}}\n")
        sent = f'{{"queue": "q", "message": {{{message}}}}}'
        await self.ask("PUT", "/api/v1/batches/of-others", f'{{"then": {sent}, "onDead": {sent}}}')
        published = '{"app": "a", "version": 1, "stages": [{"queue": "q", "stage": "t", "pages": 1}]}'
        await self.ask("POST", "/api/v1/publications", published)
        self.ids = {
            "letter": letters[-1]["id"],
            "waiting": waiting[0]["id"],
            "finished": finished[0]["id"],
            "redrive": task["id"],
        }

    def path_of(self, endpoint: Endpoint[Any], queue: str = "q") -> str:
        """The path of an endpoint, about what is stored. queue: that of its messages, or of its dead letters."""
        is_dead = "dead-letters" in endpoint.path
        if queue == "q" and (endpoint.name == "listRedrives" or "{redriveId}" in endpoint.path):
            queue = REDRIVEN
        message = "letter" if is_dead else "finished" if "history" in endpoint.path else "waiting"
        return "/api/v1" + endpoint.path.format(
            queue=f"{queue}-dlq" if is_dead else queue,
            messageId=self.ids[message],
            redriveId=self.ids["redrive"],
            consumer="c",
            number=1,
            workerId=self.ids["waiting"],
            name="nobody",
            schedule="s",
            stage="s",
            page="1" if endpoint.name == "stagePage" else "0",
            app="a",
            outbox="o",
            batch="b",
            key="k",
        )


NEW = '{"content": "new"}'
BODIES: dict[str, Callable[[dict[str, str]], str]] = {
    "sendMessage": lambda ids: NEW,
    "sendMessages": lambda ids: f'{{"messages": [{NEW}]}}',
    "offerMessage": lambda ids: NEW,
    "offerMessages": lambda ids: '{"messages": [{"key": "k", "content": "new"}]}',
    "rescheduleKey": lambda ids: '{"delayMs": 5}',
    "requeueFinished": lambda ids: f'{{"ids": ["{ids["finished"]}"]}}',
    "resubmitDeadLetter": lambda ids: "{}",
    "redriveDeadLetters": lambda ids: f'{{"ids": ["{ids["letter"]}"]}}',
    "deleteDeadLetters": lambda ids: f'{{"ids": ["{ids["letter"]}"]}}',
    "startRedrive": lambda ids: '{"filter": {}, "ratePerSecond": 1}',
    "saveSchedule": lambda ids: '{"queue": "q", "content": "new", "every": "2h"}',
    "nextRuns": lambda ids: '{"every": "1h"}',
    "stagePage": lambda ids: f"{NEW}\n",
    "relayOutbox": lambda ids: '{"after": 0, "messages": []}',
    "openBatch": lambda ids: "{}",
    "addToBatch": lambda ids: f'{{"messages": [{{"queue": "q", "message": {NEW}}}]}}',
    "publish": lambda ids: '{"app": "b", "version": 1, "stages": [{"queue": "q", "stage": "s", "pages": 1}]}',
}
SENDS_TOO = ("saveSchedule", "resumeSchedule", "runSchedule")


@pytest.mark.parametrize("name", sorted(changes()))
async def test_no_answer_of_a_change_has_what_was_stored_by_others(name: str) -> None:
    async with open_api(MemoryEngine(EngineSettings(history=True))) as api:
        stored = Stored(api)
        await stored.fill()
        ids = stored.ids
        endpoint = changes()[name]
        scopes = (endpoint.scope, Scope.PRODUCE) if name in SENDS_TOO else (endpoint.scope,)
        holder = await Tokens(api).holder(*scopes)
        if name == "dismissRedrive":
            await stored.ask("POST", f"{REDRIVEN}-dlq/dead-letters/redrives/{ids['redrive']}/cancel")
        if "{batch}" in endpoint.path:  # a token sees only its own
            await holder.ask("PUT", "/api/v1/batches/b", b"{}")
        path = stored.path_of(endpoint)
        body = BODIES[name](ids) if name in BODIES else ""
        status, answer = await holder.ask(endpoint.method, path, body.encode())
        assert status < 300, answer
        assert CANARY not in str(answer)
        declared = {json_name(member) for each in answered(endpoint) for member in each.__struct_fields__}
        assert answer.keys() <= declared, "it answers with more than it declares"


@pytest.mark.parametrize("queue", ["q", "mine"], ids=["of others", "own"])
async def test_no_answer_to_a_token_for_other_queues_has_what_is_in_these(queue: str, autojump_clock) -> None:
    """All endpoints, refusals as well, asked by who has every scope: about queues of others, and about its own with
    the ids of others. Some wait, by a clock that jumps."""
    async with open_api(MemoryEngine(EngineSettings(history=True, events=True))) as api:
        stored = Stored(api)
        await stored.fill()
        await stored.ask("POST", "mine/messages", NEW)
        holder = await Tokens(api).holder(*Scope, queues="mine*")
        shown = []
        for endpoint in all_endpoints():
            bodies = {BODIES[endpoint.name](stored.ids) if endpoint.name in BODIES else "", "", "{}", "[]"}
            for body in bodies:
                body = body.replace('"queue": "q"', f'"queue": "{queue}"')
                path = stored.path_of(endpoint, queue)
                status, answer = await holder.ask(endpoint.method, path, body.encode())
                if CANARY in str(answer) or status >= 500:
                    shown.append((endpoint.name, body, status, answer))
        assert shown == []


async def test_who_may_look_is_shown_it() -> None:
    """So the canary is where it would be found."""
    async with open_api(MemoryEngine(EngineSettings(history=True, events=True))) as api:
        stored = Stored(api)
        await stored.fill()
        holder = await Tokens(api).holder(Scope.BROWSE)
        seen = {
            name
            for name, look in looks().items()
            if CANARY in str(await holder.ask(look.method, stored.path_of(look)))
        }
        assert seen >= {
            "peekMessages",
            "searchDeadLetters",
            "searchHistory",
            "showDeadLetter",
            "showFinishedMessage",
            "showKey",
            "showMessage",
            "showRedrive",
            "showSchedule",
            "listRedrives",
            "listSchedules",
        }
