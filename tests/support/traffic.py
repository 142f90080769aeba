"""Work for a server while a test looks at it: messages keep coming, and are consumed if somebody is asked to."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from forq_trio import ForqClient


class Traffic:
    """What the threads have done so far."""

    def __init__(self) -> None:
        self.sent = 0
        self.acked = 0
        self.problems: list[Exception] = []
        self._stop = threading.Event()

    def stop(self) -> None:
        self._stop.set()

    def produce(self, client: ForqClient, queue: str, per_second: float) -> None:
        """Send one message after the other until it is to stop."""
        try:
            while not self._stop.wait(1 / per_second):
                client.produce(queue, f'{{"number": {self.sent}}}')
                self.sent += 1
        except Exception as problem:
            self.problems.append(problem)

    def consume(self, client: ForqClient, queue: str) -> None:
        """Ack what comes until it is to stop."""
        try:
            while not self._stop.is_set():
                receipts = [
                    delivery.receipt for delivery in client.receive(queue, max_messages=10, wait_ms=200)
                ]
                if receipts:
                    client.ack(queue, receipts)
                self.acked += len(receipts)
        except Exception as problem:
            self.problems.append(problem)


@contextmanager
def live_producer(
    url: str, secret: str, queue: str, *, per_second: float = 5, consumers: int = 0
) -> Iterator[Traffic]:
    """Somebody who sends, and `consumers` who ack, in threads of this process. They end with the block."""
    traffic = Traffic()
    with ExitStack() as stack:
        client = stack.enter_context(ForqClient(url, secret))
        threads = [threading.Thread(target=traffic.produce, args=(client, queue, per_second))]
        threads += [threading.Thread(target=traffic.consume, args=(client, queue)) for _ in range(consumers)]
        for thread in threads:
            thread.start()
        try:
            yield traffic
        finally:
            traffic.stop()
            for thread in threads:
                thread.join()
    if traffic.problems:
        raise traffic.problems[0]
