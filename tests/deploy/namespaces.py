"""Processes in a root of their own: chroot in namespaces, over layers of files, without a container engine.

It takes the rights of root, and Linux with overlayfs. A layer is a folder; the upper one takes what a command changes.
Without an upper one the root is read-only. The root needs no program but the one that is to run.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.needs import lacks
from support.processes import WAIT_SECONDS_MAX

_SETUP = """
set -eu
root=$1 layers=$2 network=$3
shift 3
mount -t overlay overlay -o "$layers" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for each in null zero full random urandom; do
  : > "$root/dev/$each"
  mount --bind "/dev/$each" "$root/dev/$each"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
if [ "$network" = host ]; then
  mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
else
  ip link set lo up
fi
while [ "$1" != -- ]; do
  case $1 in
    tmpfs) mount -t tmpfs -o mode=1777 tmpfs "$root$2" ;;
    volume) mount --bind "$3" "$root$2"; shift ;;
    file) mkdir -p "$(dirname "$root$2")"; cp "$3" "$root$2"; chmod 444 "$root$2"; shift ;;
  esac
  shift 2
done
shift
exec "$@"
"""
"""What `docker run` does before the command: arguments are the root, options of the overlay, whose network, the mounts,
and the command behind `--`. The shell becomes the command, so that this is process 1 of its namespace."""

_INSIDE = """
import ctypes, json, os, signal, sys, warnings
to = json.loads(sys.argv[1])
libc = ctypes.CDLL(None)
os.chroot(to["root"])
os.chdir(to["workdir"])
os.setgroups([])
if to["uid"]:
    PR_CAPBSET_DROP, right = 24, 0
    while libc.prctl(PR_CAPBSET_DROP, right, 0, 0, 0) == 0:
        right += 1
os.setresgid(to["gid"], to["gid"], to["gid"])
os.setresuid(to["uid"], to["uid"], to["uid"])  # whose rights go with it, unless it is root's
for each in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and so would the command
    signal.signal(each, signal.SIG_DFL)
# It needs warnings, which would not be found there.
os.execvpe(to["command"][0], to["command"], to["env"])
"""
"""Becomes a command in a root, as a user without rights, or as root: our Python, for the root may have no program that
does this."""


def need_namespaces() -> None:
    """Skip the test where a root of its own is not allowed."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        lacks("the image", "the rights of root, or a Docker daemon", installed=False)
    if "overlay" not in Path("/proc/filesystems").read_text(encoding="utf-8"):
        subprocess.run(["modprobe", "overlay"], capture_output=True, check=False)


@dataclass(frozen=True)
class Layers:
    """The files of a root. lower: the topmost first. upper: what a command writes to; None for a read-only root."""

    lower: Sequence[Path]
    upper: Path | None = None

    def options(self, work: Path) -> str:
        """The options of mount for an overlay. work: an empty folder on the file system of the upper layer."""
        lower = f"lowerdir={':'.join(map(str, self.lower))}"
        return lower if self.upper is None else f"{lower},upperdir={self.upper},workdir={work}"


@dataclass(frozen=True)
class Way:
    """How a command is run in a root."""

    root: Path  # where it is mounted
    env: Mapping[str, str]
    user: str = "0:0"
    workdir: str = "/"

    def inside(self, command: Sequence[str]) -> list[str]:
        """The command line that becomes the command there, in the namespaces that it is run in."""
        uid, _, gid = self.user.partition(":")
        to = {
            "root": str(self.root),
            "workdir": self.workdir,
            "uid": int(uid),
            "gid": int(gid),
            "env": dict(self.env),
            "command": list(command),
        }
        rights = ["setpriv", "--no-new-privs", "--inh-caps=-all"] if to["uid"] else []
        return [*rights, sys.executable, "-I", "-S", "-c", _INSIDE, json.dumps(to)]


def enter(
    way: Way, layers: Layers, command: Sequence[str], *, mounts: Sequence[str] = (), network: str = "own"
) -> list[str]:
    """The command line that mounts a root, in namespaces of its own, and runs a command there.

    mounts: words of `_SETUP`. network: "own", which has loopback alone, or "host".
    """
    work = way.root.with_name("work")
    way.root.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    namespaces = ["--mount", "--pid", "--ipc", "--uts", *(["--net"] if network == "own" else [])]
    outside = ["unshare", *namespaces, "--fork", "--kill-child", "--propagation", "private"]
    setup = ["sh", "-c", _SETUP, "sh", str(way.root), layers.options(work), network]
    return [*outside, *setup, *mounts, "--", *way.inside(command)]


def within(pid: int, way: Way, command: Sequence[str]) -> list[str]:
    """The command line that runs a command beside process 1 of such namespaces, as `docker exec` does."""
    there = ["nsenter", f"--target={pid}", "--mount", "--pid", "--ipc", "--uts", "--net"]
    return [*there, *way.inside(command)]


def child_of(process: "subprocess.Popen[str]") -> int:
    """The process that `unshare` has started: process 1 there."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8")
    return int(children.split()[0])


def size(folder: Path) -> int:
    """The bytes of all files below it, each counted once."""
    seen = {}
    for place, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(Path(place) / name)
            seen[status.st_ino] = status.st_size
    return sum(seen.values())


def run(command: Sequence[str]) -> str:
    """What a command says; fails with that if it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=10 * WAIT_SECONDS_MAX
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
