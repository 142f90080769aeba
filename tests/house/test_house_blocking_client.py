"""The blocking client that is committed is the one that is generated from the asynchronous one."""

from blocking_client import ASYNCHRONOUS, BLOCKING, blocking


def test_the_blocking_client_is_up_to_date() -> None:
    generated = blocking(ASYNCHRONOUS.read_text(encoding="utf-8"))
    assert BLOCKING.read_text(encoding="utf-8") == generated, "run `python tests/house/blocking_client.py`"
