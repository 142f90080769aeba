"""The blocking client is what the asynchronous one says."""

import runpy


def test_the_blocking_client_is_up_to_date(root) -> None:
    script = runpy.run_path(str(root / "script" / "blocking_client.py"))
    for asynchronous, made in script["PARTS"].items():
        generated = script["blocking"](asynchronous.read_text(encoding="utf-8"), str(made))
        assert made.read_text(encoding="utf-8") == generated, "run `python script/blocking_client.py`"
