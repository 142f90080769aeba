"""The blocking client is what the asynchronous one says."""

import runpy


def test_the_blocking_client_is_up_to_date(root) -> None:
    made = runpy.run_path(str(root / "script" / "blocking_client.py"))
    generated = made["blocking"](made["ASYNCHRONOUS"].read_text(encoding="utf-8"))
    assert made["BLOCKING"].read_text(encoding="utf-8") == generated, "run `python script/blocking_client.py`"
