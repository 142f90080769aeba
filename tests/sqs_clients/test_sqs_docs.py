"""The programs of docs/sqs.md run as a newcomer copies them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.foreign import run
from support.processes import killed_after
from support.programs import ROOT, path_to_package
from support.real_server import RealServer
from support.sqs_clients import ended, left, worker

pytestmark = [pytest.mark.process, pytest.mark.tier2]

PAGE = (ROOT / "docs" / "sqs.md").read_text(encoding="utf-8")
SECTIONS = ("boto3 in five minutes", "Celery in five minutes")
BIN = Path(sys.executable).parent


def blocks(title: str) -> list[str]:
    """The programs and commands of a section, in their order."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^```\w+\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def variables_of(commands: str, server: RealServer, folder: Path) -> dict[str, str]:
    """Those that the commands of the page export."""
    commands = commands.replace("http://localhost:8080", server.url)
    path = {"PATH": f"{BIN}:{os.environ['PATH']}", "FORQ_URL": server.url}
    said = run(folder, "bash", "-euc", f"{commands}\nenv -0", **path, **path_to_package())
    pairs = (line.split("=", 1) for line in said.stdout.split("\0") if line)
    return {name: value for name, value in pairs if name.startswith("AWS_")}


def wait_for(process: "subprocess.Popen[str]", text: str) -> None:
    """Until a worker writes this."""
    lines = []
    with killed_after(process):
        for line in process.stdout or ():
            lines.append(line)
            if text in line:
                return
    raise AssertionError("".join(lines))


def test_every_program_is_run() -> None:
    assert len(re.findall("^```", PAGE, re.MULTILINE)) == 2 * sum(len(blocks(title)) for title in SECTIONS)


def test_boto3(server, tmp_path) -> None:
    keys, program = blocks("boto3 in five minutes")
    variables = variables_of(keys, server, tmp_path)
    assert run(tmp_path, sys.executable, "-c", program, **variables).stdout == "hello\n"


@pytest.mark.parametrize("by_variable", [True, False])
def test_celery(server, sqs, by_variable, tmp_path, monkeypatch) -> None:
    keys, shop, start, send = blocks("Celery in five minutes")
    variables = variables_of(keys, server, tmp_path)
    if not by_variable:
        del variables["AWS_ENDPOINT_URL_SQS"]
        monkeypatch.delenv("AWS_ENDPOINT_URL_SQS")
        shop = shop.replace('"sqs://"', f'"sqs://{server.address}"')
    (tmp_path / "shop.py").write_text(shop)
    program, *arguments = shlex.split(start)
    python, *given = shlex.split(send)
    with worker(str(BIN / program), *arguments, folder=tmp_path, **variables) as process:
        run(tmp_path, str(BIN / python), *given, **variables)
        wait_for(process, "welcome, Ada")
        wrote = ended(process)
    assert process.returncode == 0, wrote
    assert left(sqs, "celery") == 0
