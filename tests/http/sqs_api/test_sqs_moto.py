"""moto's own tests of SQS, against our server in the place of moto's.

They are fetched when this runs, from the sources of the release that NAME says, and never stored here.
"""

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from support.needs import lacks
from support.real_server import real_server

NAME = "moto-5.2.5"
ADDRESS = "localhost:5000"  # some of the tests spell it
ACCOUNT = "123456789012"
PASSED_MIN = 142
FILES = ("test_sqs.py", "test_sqs_message_attributes.py")
LEFT_OUT = {
    "test_create_queue_with_different_attributes_fail": "takes FifoQueue=tru, which AWS refuses",
    "test_create_fifo_queue_with_dlq": "takes FifoQueue=false, which AWS refuses",
    "test_message_retention_period": "takes a retention of one second; AWS has a minimum of 60",
    "test_message_delay_is_more_than_15_minutes": "takes a MessageDeduplicationId in a standard queue",
    "test_send_messages_to_fifo_without_message_group_id": "expects MissingParameter; AWS answers a batch otherwise",
    "test_change_message_visibility_on_unknown_receipt_handle": "expects another text than AWS's",
    "test_delete_message_errors": "expects another text than AWS's",
}
"""By the beginnings of their names, with the reason."""


def sources(folder: Path) -> Path:
    """The folder with moto's tests."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    done = subprocess.run(
        [*command, "--dest", folder, NAME.replace("-", "==")], capture_output=True, text=True
    )
    if done.returncode:
        lacks("moto's tests", f"{NAME} from the package index: {done.stderr[-500:]}")
    with tarfile.open(folder / f"{NAME}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    ours = '@pytest.fixture\ndef account_id():\n    return "123456789012"\n'  # theirs asks another service
    root = folder / NAME
    (root / "tests/test_sqs/conftest.py").write_text(f"import pytest\n\n\n{ours}", encoding="utf-8")
    return root


@pytest.mark.tier2
@pytest.mark.process
def test_motos_tests_pass(tmp_path: Path) -> None:
    root, report = sources(tmp_path), tmp_path / "report.xml"
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TEST_SERVER_MODE": "true",
        "TEST_SERVER_MODE_ENDPOINT": f"http://{ADDRESS}",
        "MOTO_CALL_RESET_API": "false",
    }
    left_out = [f"--deselect=tests/test_sqs/{FILES[0]}::{name}" for name in LEFT_OUT]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
    ]
    with real_server(tmp_path / "forq.db", ADDRESS, FORQ_SQS_AUTH="false", FORQ_SQS_ACCOUNT=ACCOUNT):
        done = subprocess.run(
            [*command, *left_out, *(f"tests/test_sqs/{each}" for each in FILES)],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
        )
    cases = ET.parse(report).getroot().iter("testcase")
    outcomes = [{each.tag for each in case} & {"failure", "error", "skipped"} for case in cases]
    assert done.returncode == 0, done.stdout[-3_000:]
    assert outcomes.count(set()) >= PASSED_MIN
