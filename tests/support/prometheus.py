"""A real Prometheus with the project's rules, and promtool: Debian's package `prometheus`."""

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from support.needs import lacks
from support.processes import WAIT_SECONDS_MAX, killed_after

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"
LISTENS = re.compile(r'msg="Listening on" address=(\S+)')
READY = "ready to receive web requests"


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`; the test is skipped without."""
    found = shutil.which(name)
    if found is None:
        lacks("Prometheus", f"{name} (on Debian: apt install prometheus)")
    return found


def promtool(*arguments: str | Path) -> str:
    """What promtool says; fails if it finds something."""
    done = subprocess.run(
        [program("promtool"), *arguments],
        capture_output=True,
        text=True,
        timeout=10 * WAIT_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_configuration(folder: Path, secret: str, jobs: Mapping[str, list[str]]) -> Path:
    """The project's configuration and rules with these jobs and their targets, and with a second for each interval."""
    configuration = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    configuration["global"] = dict.fromkeys(configuration["global"], "1s")
    (job,) = configuration["scrape_configs"]
    configuration["scrape_configs"] = [
        job | {"job_name": name, "static_configs": [{"targets": targets}]} for name, targets in jobs.items()
    ]
    (folder / "rules").mkdir()
    for file in (FOLDER / "rules").glob("*.yml"):
        text = re.sub(
            r"^    interval: .*$", "    interval: 1s", file.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        (folder / "rules" / file.name).write_text(text, encoding="utf-8")
    (folder / job["authorization"]["credentials_file"]).write_text(secret + "\n", encoding="utf-8")
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    return file


class Prometheus:
    """Asks a running Prometheus."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=WAIT_SECONDS_MAX, verify=False)

    def query(self, expr: str) -> list[dict[str, Any]]:
        """The series that an expression has now, each with its labels (`metric`) and its `value`."""
        answer = self._client.post("/api/v1/query", data={"query": expr}).json()
        assert answer["status"] == "success", f"{expr}: {answer.get('error')}"
        return list(answer["data"]["result"])

    def has(self, expr: str) -> bool:
        """Whether an expression has a series with a number now."""
        return any(series["value"][1] != "NaN" for series in self.query(expr))

    def rules(self) -> dict[str, str]:
        """Each rule that was evaluated, and the error of its last evaluation, "" without one."""
        groups = self._client.get("/api/v1/rules").json()["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"] if rule["health"] != "unknown"]
        return {rule["query"]: rule.get("lastError", "") for rule in rules}

    def close(self) -> None:
        self._client.close()


@contextmanager
def running_prometheus(configuration: Path, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus on a free port of this machine, whose data are in `folder`; killed at the end."""
    command = [
        program("prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--web.listen-address=127.0.0.1:0",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            address = _started(process)
            assert process.stderr is not None
            # Else it waits when the pipe is full.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            with closing(Prometheus(f"http://{address}")) as prometheus:
                yield prometheus
        finally:
            process.kill()


def _started(process: "subprocess.Popen[str]") -> str:
    """The address on which it listens, once it answers."""
    assert process.stderr is not None
    lines = []
    address = ""
    with killed_after(process):
        for line in process.stderr:
            lines.append(line)
            if found := LISTENS.search(line):
                address = found[1].strip('"')
            if READY in line and address:
                return address
    raise AssertionError(f"Prometheus did not start: {''.join(lines)}")
