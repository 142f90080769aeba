"""A pipeline's client as a process of its own: `python -m bench.load.pipeline publish|drain URL QUEUE BYTES MESSAGES`.

It prints `ready`, waits for a line, works, and prints as JSON how many seconds each phase took. The key is in
FORQ_AUTH_SECRET. Lines are made before the work begins, and never parsed, because the server is to be measured.
"""

import json
import os
import sys
from collections.abc import Iterator
from time import perf_counter

import httpx

from forq_trio import ForqClient
from forq_trio.model.error_answers import NEXT_HEADER

PAGE_BYTES = 256 * 1024
LEASE_MESSAGES = 100_000
LEASE_PAGES = 200


def publish(http: httpx.Client, queue: str, size: int, count: int) -> dict[str, float]:
    """Stage and publish messages of so many bytes."""
    line = json.dumps({"content": "x" * size}) + "\n"
    a_page = max(PAGE_BYTES // len(line), 1)
    pages = [(line * min(a_page, count - start)).encode() for start in range(0, count, a_page)]
    _wait_for_go()
    started = perf_counter()
    for number, page in enumerate(pages):
        http.post(f"/api/v1/queues/{queue}/stages/s/pages/{number}", content=page).raise_for_status()
    staged = perf_counter()
    stages = [{"queue": queue, "stage": "s", "pages": len(pages)}]
    body = {"app": queue, "version": 1, "stages": stages}
    http.post("/api/v1/publications", json=body).raise_for_status()
    return {"stage": staged - started, "move": perf_counter() - staged}


def drain(http: httpx.Client, queue: str, size: int, count: int) -> dict[str, float]:
    """Lease, read and acknowledge all messages of a queue."""
    phases = {"lease": 0.0, "read": 0.0, "acknowledge": 0.0}
    with ForqClient(str(http.base_url), os.environ["FORQ_AUTH_SECRET"]) as client:
        generation = client.open_consumer(queue, "bench").generation
        _wait_for_go()
        number = left = 1
        while left:
            at = perf_counter()
            left = client.lease(queue, "bench", generation, number, max_messages=LEASE_MESSAGES).messages
            leased = perf_counter()
            count -= sum(page.count(b"\n") for page in _pages(http, queue, number)) if left else 0
            read = perf_counter()
            if left:
                client.acknowledge(queue, "bench", generation, number)
            for phase, seconds in zip(
                phases, (leased - at, read - leased, perf_counter() - read), strict=True
            ):
                phases[phase] += seconds
            number += 1
    if count:
        raise SystemExit(f"{count} messages were not there")
    return phases


def _pages(http: httpx.Client, queue: str, number: int) -> Iterator[bytes]:
    page: str | None = "0"
    while page is not None:
        path = f"/api/v1/queues/{queue}/consumers/bench/leases/{number}"
        answer = http.get(path, params={"page": page, "pages": LEASE_PAGES}).raise_for_status()
        yield answer.content
        page = answer.headers.get(NEXT_HEADER)


def _wait_for_go() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def main() -> None:
    work, url, queue, size, count = sys.argv[1:]
    headers = {"X-API-Key": os.environ["FORQ_AUTH_SECRET"]}
    with httpx.Client(base_url=url, headers=headers, timeout=120) as http:
        run = {"publish": publish, "drain": drain}[work]
        print(json.dumps(run(http, queue, int(size), int(count))), flush=True)


if __name__ == "__main__":
    main()
