"""examples/orders: server, workers and shop as real processes, used over HTTP as its reader would."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from forq_trio import ForqClient
from support.processes import WAIT_SECONDS_MAX, killed_after
from support.real_server import SECRET, environment, real_server

ROOT = Path(__file__).parents[3]
ORDERS = ROOT / "examples" / "orders"


@contextlib.contextmanager
def started(program: str, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "error", str(ORDERS / program), *arguments]
    env = environment(PYTHONPATH=str(ROOT), **variables)
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def order(shop: httpx.Client, **form: object) -> str:
    """Order something; returns the path of the page that comes then."""
    taken = shop.post("/orders", data=form)
    assert taken.status_code == 303
    return taken.headers["Location"]


def import_orders(lines: str, **variables: str) -> None:
    command = [sys.executable, "-W", "error", str(ORDERS / "import_orders.py")]
    env = environment(PYTHONPATH=str(ROOT), **variables)
    subprocess.run(command, env=env, input=lines, text=True, timeout=WAIT_SECONDS_MAX, check=True)


def dead_letter(client: ForqClient, queue: str) -> None:
    """Wait until the queue has a dead letter, and give it back."""
    (delivery,) = client.receive(queue, wait_ms=30_000)
    client.release(queue, delivery)


@pytest.mark.process
def test_orders_go_through_and_what_fails_is_shown(tmp_path: Path) -> None:
    with real_server(tmp_path / "forq.db") as server, ForqClient(server.url, SECRET) as client:
        variables = {"FORQ_URL": server.url, "ORDERS_DB": str(tmp_path / "orders.db")}
        with started("shop.py", "0", **variables) as process, killed_after(process):
            assert process.stdout is not None
            with httpx.Client(base_url=process.stdout.readline().strip(), verify=False) as shop:
                assert shop.post("/orders", data={"item": "tea"}).status_code == 422
                refused = shop.post("/report")  # the workers make the schedule
                assert (refused.status_code, "no schedule of that name" in refused.text) == (503, True)
                order(shop, customer="Anna", item="tea", amount=7)
                order(shop, customer="Bela", item="yacht", amount=90_000)
                order(shop, customer="Cleo", item="nothing", amount=1)
                regretted = order(shop, customer="Emil", item="tea", amount=5)
                assert "Cancel the order" in shop.get(regretted).text
                assert shop.post("/cancel", data={"id": regretted.removeprefix("/?")}).status_code == 303
                import_orders("8,Dora,coffee,9\n", **variables)
                import_orders("8,Dora,coffee,9\n", **variables)
                with started("workers.py", **variables) as workers, killed_after(workers):
                    dead_letter(client, "orders-dlq")
                    dead_letter(client, "shipping-dlq")
                    assert re.fullmatch(r"\d orders were shipped, for \d+\.", shop.post("/total").text)
                    workers.terminate()
                    assert workers.wait(WAIT_SECONDS_MAX) == 0
                assert [shop.post(path).status_code for path in ("/again", "/report")] == [303, 303]
                with started("workers.py", "--once", **variables) as workers:
                    assert workers.wait(WAIT_SECONDS_MAX) == 0
                page = shop.get("/").text
    done, failed = page.split("<h2>Failed</h2>")
    assert len(re.findall(r"<li>paid \w+ 7</li>", done)) == 1
    assert len(re.findall(r"<li>shipped \w+ 7</li>", done)) == 1
    assert "<li>shipped 8 9</li>" in done
    assert "report nightly" in done
    assert "imported 1 orders" in done
    assert " 5</li>" not in done  # what was cancelled
    assert "Bela cannot pay 90000" in failed


AGAIN = """
from database import database
from workers import Order, app, pay
shipped = 0

@app.middleware
async def repeat(job, call_next):
    global shipped
    outcome = await call_next()
    if job.queue == "orders" and job.attempt == 1:
        raise OSError("the answer was lost, after the handler was done")
    shipped += job.queue == "shipping"
    if shipped == 2:
        app.stop()
    return outcome

async def first():
    await pay.later(Order("7", "Anna", "tea", 7))

app.run(first=first)
print(database().execute("SELECT step, number FROM done").fetchall())
"""


@pytest.mark.tier2
def test_an_order_that_is_handled_twice_is_paid_and_shipped_once(tmp_path: Path) -> None:
    """The second time comes after the first was shipped."""
    variables = {"FORQ_URL": "memory:", "ORDERS_DB": str(tmp_path / "orders.db")}
    env = environment(PYTHONPATH=f"{ROOT}:{ORDERS}", **variables)
    command = [sys.executable, "-c", AGAIN]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[('paid', '7'), ('shipped', '7')]\n"


def test_its_own_test_passes(tmp_path: Path) -> None:
    """On trio and on asyncio."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider", ORDERS],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert run.stdout.splitlines()[-1].startswith("4 passed"), run.stdout
