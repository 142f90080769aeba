"""The shop's web form: it takes orders, shows what became of them, and sends dead letters again.

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
from urllib.parse import parse_qs

from database import database
from workers import URL, Order, pay

from forq_trio import ForqClient, ForqError

FAILED = ("orders-dlq", "shipping-dlq")
BODY_BYTES_MAX = 10_000
PAGE = """<!doctype html><title>Orders</title>
<form method="post" action="/orders">
  <input name="customer" placeholder="Customer"> <input name="item" placeholder="Item">
  <input name="amount" type="number" placeholder="Amount"> <button>Order</button>
</form>
<h2>Done</h2><ul>{done}</ul>
<h2>Failed</h2><ul>{failed}</ul>
<form method="post" action="/again"><button>Try again</button></form>
<form method="post" action="/report"><button>Report now</button></form>
"""


class Shop(BaseHTTPRequestHandler):
    """Answers one connection. All of them share the client."""

    client: ForqClient

    def do_GET(self) -> None:
        """The page: the form, what is done, and what failed with its reason."""
        self._try(self._page)

    def do_POST(self) -> None:
        """Take an order, send dead letters again, or ask for a report."""
        actions = {"/orders": self._order, "/again": self._again, "/report": self._report}
        self._try(actions.get(self.path, self._unknown))

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except ForqError as error:
            self._answer(503, escape(str(error)))

    def _page(self) -> None:
        with closing(database()) as connection:
            done = connection.execute("SELECT step, number, amount FROM done ORDER BY rowid").fetchall()
        failed = [
            f"{queue} {message.content}: {message.last_error}"
            for queue in FAILED
            for message in self.client.search_dead_letters(queue).messages
        ]
        lines = [" ".join(map(str, row)) for row in done]
        self._answer(200, PAGE.format(done=_items(lines), failed=_items(failed)))

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

    def _order(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        if length > BODY_BYTES_MAX:
            self._answer(413, "That is too much.")
            return
        form = {name: values[0] for name, values in parse_qs(self.rfile.read(length).decode()).items()}
        try:
            order = Order(uuid.uuid4().hex[:8], form["customer"], form["item"], int(form["amount"]))
        except (KeyError, ValueError):
            self._answer(422, "An order has a customer, an item and an amount.")
            return
        pay.later_blocking(order)  # on disk when this returns
        self._back()

    def _back(self) -> None:
        self.send_response(303)
        self.send_header("Location", "/")
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
