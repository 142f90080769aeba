"""An application of PyQS."""

from pyqs import task
from said import say


@task(queue="adding")
def add(a: int, b: int) -> None:
    say(f"add {a + b}")


@task(queue="failing")
def fail() -> None:
    say("fail")
    raise ValueError("as it should")
