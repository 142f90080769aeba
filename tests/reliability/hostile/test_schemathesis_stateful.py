"""Sequences of requests along the OpenAPI document: what one answer says is used in the next request.

The document has no links, so they are added here: a send to its receive; a receive to ack, nack, extend and release by
receipt, and to a look, an ack and a nack by id; a search of dead letters to their redrive, copy and removal. They go to
a real server, which keeps its state from one to the next. No answer may be a 5xx, undocumented or of another form than
the document says; and receipts of a receive are good for what follows it. FORQ_TEST_EFFORT says how many. (Each
operation alone, also with wrong requests, is tested in `forq_api.test_schemathesis`.)
"""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.checks import CHECKS
from schemathesis.generation import GenerationMode

from support.effort import count
from support.openapi_words import closed
from support.processes import WAIT_SECONDS_MAX
from support.real_server import RealServer, real_server

from .raw import KEY

pytestmark = [pytest.mark.process, pytest.mark.tier2]

STEPS = 10
FIRST = "$response.body#/messages/0"
NAMES = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)

BOUNDED = settings(
    max_examples=count("request_sequences"),
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def link(operation: str, body: Any = None, **parameters: str) -> dict[str, Any]:
    """To an operation on the same queue."""
    made: dict[str, Any] = {
        "operationId": operation,
        "parameters": {"path.queue": "$request.path.queue"}
        | {f"path.{name}": value for name, value in parameters.items()},
    }
    return made if body is None else made | {"requestBody": body}


RECEIPTS = {"receipts": [f"{FIRST}/receipt"]}
IDS = {"ids": [f"{FIRST}/id"]}
LINKS = {
    "sendMessages": {"received": link("receiveMessages", {"max": 3, "leaseMs": 60_000})},
    "receiveMessages": {
        "acked": link("ackMessages", RECEIPTS),
        "nacked": link("nackMessages", RECEIPTS | {"delayMs": 0}),
        "extended": link("extendLeases", RECEIPTS | {"leaseMs": 50_000}),
        "released": link("releaseMessages", RECEIPTS),
        "shown": link("showMessage", messageId=f"{FIRST}/id"),
        "acked by id": link("ackMessage", messageId=f"{FIRST}/id"),
        "nacked by id": link("nackMessage", messageId=f"{FIRST}/id"),
    },
    "searchDeadLetters": {
        "redriven": link("redriveDeadLetters", IDS),
        "deleted": link("deleteDeadLetters", IDS),
        "shown": link("showDeadLetter", messageId=f"{FIRST}/id"),
        "resubmitted": link("resubmitDeadLetter", {}, messageId=f"{FIRST}/id"),
    },
}
GOOD_FOR = {"ackMessages", "nackMessages", "extendLeases", "releaseMessages"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """Of its own: requests are generated, and other tests count what is theirs."""
    with real_server(tmp_path_factory.mktemp("sequences") / "forq.db") as server:
        yield server
        assert server.stop() == 0


def document(server: RealServer) -> dict[str, Any]:
    """The document with links, and with only what they lead from or to."""
    linked = {each["operationId"] for links in LINKS.values() for each in links.values()} | LINKS.keys()
    found = closed(requests.get(f"{server.url}/openapi.json", timeout=WAIT_SECONDS_MAX).json())
    for path, methods in found["paths"].items():
        kept = {method: each for method, each in methods.items() if each["operationId"] in linked}
        found["paths"][path] = kept
        for each in kept.values():
            for parameter in each.get("parameters", ()):
                if parameter["name"] == "queue":
                    parameter["schema"] = {"enum": ["q", "q-dlq"]}
            if each["operationId"] in LINKS:
                each["responses"]["200"]["links"] = LINKS[each["operationId"]]
    return found


def fill(server: RealServer, session: requests.Session) -> None:
    """More messages, ready and dead, than the sequences can use up."""
    session.headers.update(KEY)
    for queue, attempts in (("q", 1), ("q", 100)):
        messages = [{"content": str(number), "maxAttempts": attempts} for number in range(500)]
        url = f"{server.url}/api/v1/queues/{queue}/messages"
        assert session.post(f"{url}/batch", json={"messages": messages}).status_code == 200
        while attempts == 1 and (
            found := session.post(f"{url}/receive", json={"max": 100}).json()["messages"]
        ):
            session.post(f"{url}/nack", json={"receipts": [message["receipt"] for message in found]})


def test_sequences_of_requests(server) -> None:
    schema = schemathesis.openapi.from_dict(document(server))
    schema.config.update(base_url=server.url)
    schema.config.generation.update(modes=[GenerationMode.POSITIVE])
    asked: dict[str, int] = {}
    accepted: dict[str, int] = dict.fromkeys(GOOD_FOR, 0)
    session = requests.Session()

    class Workflow(schema.as_state_machine()):
        def before_call(self, case: schemathesis.Case) -> None:
            case.headers["X-API-Key"] = KEY["X-API-Key"]
            if isinstance(case.body, dict) and isinstance(case.body.get("waitMs"), int):
                case.body["waitMs"] = min(case.body["waitMs"], 20)

        def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, Any]:
            return {"session": session}

        def validate_response(self, response: Any, case: schemathesis.Case, **_: Any) -> None:
            case.validate_response(response, checks=CHECKS.get_by_names(list(NAMES)))
            name = case.operation.definition.raw["operationId"]
            asked[name] = asked.get(name, 0) + 1
            if name in GOOD_FOR and response.status_code == 200:
                accepted[name] += sum(result["ok"] for result in response.json()["results"])

    fill(server, session)
    with session:
        run_state_machine_as_test(Workflow, settings=BOUNDED)
    print(f"asked: {asked}; receipts accepted: {accepted}")
    assert sum(accepted.values()) > 0, "no receipt of a receive was ever used"
