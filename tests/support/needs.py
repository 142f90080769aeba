"""A plugin of pytest: tests that need a program which this machine lacks are skipped, and the run ends with how many.

Under CI=true those fail whose program script/test has installed there.
"""

import os
import re
from collections import Counter
from typing import NoReturn

import pytest

_LACKS = re.compile(r"tests of .+ need what is not here: .+(?='\)$)")


def lacks(tests: str, missing: str, *, installed: bool = True) -> NoReturn:
    """Skip this test, one of `tests` ("Spark"). missing: what it needs, and how to get it.

    installed: by script/test.
    """
    reason = f"tests of {tests} need what is not here: {missing}"
    if installed and os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [found[0] for report in skipped if (found := _LACKS.search(str(report.longrepr)))]
    for reason, number in Counter(reasons).items():
        terminalreporter.write_line(f"NOT RUN: {number} {reason}", red=True, bold=True)
