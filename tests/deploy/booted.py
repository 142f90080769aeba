"""A systemd of its own, in namespaces, over the files of this machine: what it changes is gone with it.

Its root is an overlay on "/", so it is this machine's systemd, with this machine's Python. It has loopback
alone, and a group of its own among the cgroups. It takes the rights of root.
"""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.needs import lacks
from support.processes import WAIT_SECONDS_MAX

from .namespaces import child_of

VERSION_MIN = 250
"""The first systemd that knows %d."""
SOURCE = "/srv"
"""Where the source is there."""
_START = """
set -eu
above=$(findmnt --noheadings --output TARGET --types cgroup2 | head -n 1)$(sed -n "s/^0:://p" /proc/self/cgroup)
group=$above/forq-test-$$
mkdir "$group"
echo "$group" > "$1/group"
echo $$ > "$group/cgroup.procs"
exec unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child --propagation private sh -c "$2" sh "$1" "$3"
"""
_BOOT = """
set -eu
exchange=$1 source=$2 place=$1/place
mkdir "$place"
mount -t tmpfs -o mode=755 tmpfs "$place"
cd "$place"
mkdir upper work root
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" root
mount --bind "$source" root/srv
mount -o remount,bind,ro root/srv
mount --bind "$exchange" root/mnt
mount -t proc proc root/proc
mount -t sysfs sysfs root/sys
mount -t cgroup2 cgroup2 root/sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs root/run
mount -t tmpfs -o mode=1777 tmpfs root/tmp
mount -t tmpfs -o mode=755 tmpfs root/dev
mkdir root/dev/shm root/dev/pts
mount -t tmpfs -o mode=1777 tmpfs root/dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts root/dev/pts
ln -s pts/ptmx root/dev/ptmx
for each in null zero full random urandom tty; do
  : > "root/dev/$each"
  mount --bind "/dev/$each" "root/dev/$each"
done
ip link set lo up
cd root
mkdir -p run/before
pivot_root . run/before
umount --lazy run/before
mount --make-rshared /
exec env -i container=test NOTIFY_SOCKET=/mnt/ready PATH=/usr/sbin:/usr/bin /lib/systemd/systemd --unit=basic.target
"""


class Booted:
    """Such a systemd."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def run(self, script: str, *, network: bool = False) -> str:
        """What a script of the shell prints there, as root; fails with its error. network: with this machine's."""
        spaces = ["--mount", "--pid", "--ipc", "--uts", "--cgroup", *([] if network else ["--net"])]
        command = ["nsenter", f"--target={self._pid}", *spaces, "--root", "--wd", "sh", "-eu", "-c", script]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10 * WAIT_SECONDS_MAX, check=False
        )
        assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout


def need_systemd() -> None:
    """Skip the test where none can be started."""
    program = shutil.which("systemd-analyze")
    if os.geteuid() != 0 or program is None:
        lacks("a systemd that runs", "the rights of root, and systemd", installed=False)
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if int(said.split()[1]) < VERSION_MIN:
        lacks("a systemd that runs", f"systemd {VERSION_MIN}", installed=False)
    if subprocess.run(["/usr/bin/python3", "-c", "import ensurepip"], capture_output=True).returncode:
        lacks(
            "a systemd that runs",
            "/usr/bin/python3 with venv (on Debian: apt install python3-venv)",
            installed=False,
        )


@contextmanager
def booted(place: Path, source: Path) -> Iterator[Booted]:
    """Boot it up to its basic target. place: an empty folder."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        ready.bind(str(place / "ready"))
        ready.settimeout(WAIT_SECONDS_MAX)
        command = ["sh", "-c", _START, "sh", str(place), _BOOT, str(source)]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                while b"READY=1" not in ready.recv(4_096):
                    pass
                yield Booted(child_of(process))
            finally:
                with suppress(IndexError, OSError):  # it has not come that far
                    os.kill(child_of(process), signal.SIGKILL)  # and with it all that it has started
                process.communicate()
                group = Path((place / "group").read_text(encoding="utf-8").strip())
                for each, _, _ in os.walk(group, topdown=False):
                    os.rmdir(each)
