"""Makes the blocking client of the asynchronous one: `python script/blocking_client.py` writes it.

The two differ in a few words only. ruff then orders the imports and joins what fits on one line.
"""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[1] / "forq_trio" / "client"
ASYNCHRONOUS, BLOCKING = CLIENT / "aio.py", CLIENT / "sync.py"

HEAD = '''"""The blocking client. Safe to share between threads.

Generated from `aio.py` by script/blocking_client.py: change it there.
"""
'''
WORDS = (
    (r"\A\"\"\".*?\"\"\"\n", HEAD),
    (r"\n\n    Cancelling a call .*?(?=\n    \"\"\")", ""),
    (r"\basync (?=def |with\b)", ""),
    (r"\bawait ", ""),
    (r"\bAsyncForqClient\b", "ForqClient"),
    (r"\b__a(?=enter__|exit__)", "__"),
    (r"\baclose\b", "close"),
    (r"\bhttpx\.Async(?=Client\b|BaseTransport\b)", "httpx."),
    (r"\banyio\b", "time"),
)


def blocking(source: str) -> str:
    """The blocking client as text. source: the asynchronous one."""
    for pattern, replacement in WORDS:
        source, found = re.subn(pattern, lambda _, text=replacement: text, source, flags=re.DOTALL)
        assert found, f"nothing of {ASYNCHRONOUS.name} is like {pattern}"
    for arguments in (("check", "--quiet", "--select", "I", "--fix"), ("format",)):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(BLOCKING), "-"]
        source = subprocess.run(command, input=source, stdout=subprocess.PIPE, text=True, check=True).stdout
    return source


if __name__ == "__main__":
    BLOCKING.write_text(blocking(ASYNCHRONOUS.read_text(encoding="utf-8")), encoding="utf-8")
