"""The shop's web form: it takes and cancels orders, shows what became of them, and sends dead letters again.

    FORQ_URL=http://localhost:8080 FORQ_AUTH_SECRET=... python examples/orders/shop.py [port]

Python's own HTTP server is enough here.
"""

import os
import sys
import uuid
from collections.abc import Callable
from contextlib import closing
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from database import database
from reports import Report, report
from workers import URL, Order, pay

from forq_trio import ForqClient, ForqError, MessageInfo, QueueNotFound
from forq_trio.worker import JobFailed

FAILED = ("orders-dlq", "shipping-dlq")
BODY_BYTES_MAX = 10_000
PAGE = """<!doctype html><title>Orders</title>
<form method="post" action="/orders">
  <input name="customer" placeholder="Customer"> <input name="item" placeholder="Item">
  <input name="amount" type="number" placeholder="Amount"> <button>Order</button>
</form>
{cancel}
<h2>Done</h2><ul>{done}</ul>
<h2>Failed</h2><ul>{failed}</ul>
<form method="post" action="/again"><button>Try again</button></form>
<form method="post" action="/report"><button>Report</button></form>
<form method="post" action="/total"><button>Total</button></form>
"""
CANCEL = """<form method="post" action="/cancel"><input type="hidden" name="id" value="{id}">
Thank you. <button>Cancel the order</button></form>
"""


class Shop(BaseHTTPRequestHandler):
    """Answers one connection. All of them share the client."""

    client: ForqClient

    def do_GET(self) -> None:
        """The page: the form, what is done, and what failed with its reason."""
        self._try(self._page)

    def do_POST(self) -> None:
        """Take or cancel an order, send dead letters again, or ask for a report or the total."""
        actions = {
            "/orders": self._order,
            "/cancel": self._cancel,
            "/again": self._again,
            "/report": self._report,
            "/total": self._total,
        }
        self._try(actions.get(self.path, self._unknown))

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (ForqError, JobFailed, TimeoutError) as error:
            self._answer(503, escape(str(error)))

    def _dead_letters(self, queue: str) -> list[MessageInfo]:
        """What failed; nothing before the first failure, which makes the queue."""
        try:
            return self.client.search_dead_letters(queue).messages
        except QueueNotFound:
            return []

    def _page(self) -> None:
        with closing(database()) as connection:
            done = connection.execute("SELECT step, number, amount FROM done ORDER BY rowid").fetchall()
        failed = [
            f"{queue} {message.content}: {message.last_error}"
            for queue in FAILED
            for message in self._dead_letters(queue)
        ]
        lines = [" ".join(map(str, row)) for row in done]
        ordered = urlsplit(self.path).query  # behind an order: the id of its message
        cancel = CANCEL.format(id=escape(ordered)) if ordered else ""
        self._answer(200, PAGE.format(cancel=cancel, done=_items(lines), failed=_items(failed)))

    def _unknown(self) -> None:
        self._answer(404, "There is no such page.")

    def _again(self) -> None:
        for queue in FAILED:
            page = self.client.search_dead_letters(queue)
            self.client.redrive(queue, [message.id for message in page.messages])
        self._back()

    def _report(self) -> None:
        self.client.run_schedule("nightly-report")
        self._back()

    def _total(self) -> None:
        sent = report.later_blocking(Report("asked for"))
        total = report.result_blocking(sent, timeout="10 s")
        self._answer(200, f"{total.orders} orders were shipped, for {total.amount}.")

    def _order(self) -> None:
        form = self._form()
        try:
            order = Order(uuid.uuid4().hex[:8], form["customer"], form["item"], int(form["amount"]))
        except (KeyError, ValueError):
            self._answer(422, "An order has a customer, an item and an amount.")
            return
        sent = pay.later_blocking(order)  # on disk when this returns
        self._back(f"/?{sent.id}")

    def _cancel(self) -> None:
        """Cancel an order that is not paid yet, also one whose handler runs."""
        self.client.cancel("orders", self._form().get("id", ""), running=True, reason="the customer")
        self._back()

    def _form(self) -> dict[str, str]:
        """The form of the request, empty if it is too long."""
        length = int(self.headers.get("Content-Length", 0))
        if length > BODY_BYTES_MAX:
            return {}
        return {name: values[0] for name, values in parse_qs(self.rfile.read(length).decode()).items()}

    def _back(self, to: str = "/") -> None:
        self.send_response(303)
        self.send_header("Location", to)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _items(lines: list[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def main(port: int) -> None:
    """Serve on 127.0.0.1 until a signal."""
    with ForqClient(URL, os.environ["FORQ_AUTH_SECRET"]) as Shop.client:
        server = ThreadingHTTPServer(("127.0.0.1", port), Shop)
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
