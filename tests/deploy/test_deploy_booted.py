"""The installation of docs/deploy.md, command by command, under a systemd that runs, with what the unit restricts."""

import json
import re
from pathlib import Path

import pytest

from .booted import SOURCE, Booted, booted, need_systemd

AS_ROOT = "export FORQ_AUTH_SECRET_FILE=/etc/forq/auth_secret; /opt/forq/bin/forq"


def install(system: Booted, root: Path) -> str:
    """Run the commands of the page; returns what the last one prints."""
    page = (root / "docs/deploy.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^## systemd$.*?^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    first, *others = commands.splitlines()
    assert first.startswith("apt-get install ")  # what this machine has
    said = ""
    for each in others:
        said = system.run(f"cd {SOURCE}; {each}", network="pip install" in each)
    return said


def shown(system: Booted, *names: str) -> list[str]:
    """Properties of the service."""
    return [system.run(f"systemctl show forq --value --property={name}").strip() for name in names]


@pytest.mark.tier2
@pytest.mark.process
def test_the_installation_under_systemd(root: Path, tmp_path: Path) -> None:
    need_systemd()
    with booted(tmp_path, root) as system:
        assert install(system, root) == "http://127.0.0.1:8080 works.\n"
        assert system.run(f"{AS_ROOT} send orders 'one sofa'").startswith("sent ")
        (pid,) = shown(system, "MainPID")
        status = system.run(f"cat /proc/{pid}/status")
        assert re.findall(r"^(?:Cap(?:Prm|Eff|Bnd)|NoNewPrivs|Seccomp):\t(\w+)$", status, re.MULTILINE) == [
            *["0" * 16] * 3,
            "1",
            "2",
        ]
        variables = system.run(f"tr '\\0' '\\n' < /proc/{pid}/environ")
        assert "FORQ_AUTH_SECRET_FILE=/run/credentials/forq.service/auth_secret\n" in variables
        assert "FORQ_AUTH_SECRET=" not in variables
        for place in ("/", "/etc", "/usr", "/var/lib", "/opt/forq"):
            assert "Read-only" in system.run(
                f"nsenter --target={pid} --mount touch {place}/x 2>&1 || true"
            ), place
        system.run(f"kill -KILL {pid}")
        system.run("/opt/forq/bin/forq health --wait 45s")
        assert shown(system, "NRestarts") == ["1"]
        assert "one sofa" in system.run(f"{AS_ROOT} receive orders --ack")
        system.run("systemctl stop forq")
        assert shown(system, "Result", "ExecMainStatus", "ActiveState") == ["success", "0", "inactive"]
        events = system.run("journalctl --sync; journalctl --unit=forq --output=cat --no-pager").splitlines()
        assert json.loads([line for line in events if line.startswith("{")][-1])["event"] == "server.stopped"
        assert (
            system.run("stat --format='%U %a' /var/lib/forq /var/lib/forq/forq.db") == "forq 700\nforq 600\n"
        )
