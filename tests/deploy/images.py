"""The image of our Dockerfile, built and run: by Docker where a daemon answers, else by the same steps in a chroot.

Both have the same methods, so the tests do not know which it is.
"""

import json
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from support.needs import lacks
from support.processes import WAIT_SECONDS_MAX, killed_after
from support.real_server import started

from .dockerfile import ImageConfig, NotUnderstood, Stage, ignored, stages
from .namespaces import Layers, Way, child_of, enter, need_namespaces, run, size, within

PACKAGES = "python3,python3-venv,ca-certificates"
# What slim images leave out of Debian.
NOT_IN_SLIM = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale")
_FOR_PIP = (
    "PIP_",
    "SSL_CERT_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)


class Container(Protocol):
    """A running container."""

    def exec(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in it, as its user and with its variables."""
        ...

    def stop(self) -> int:
        """Send process 1 SIGTERM; returns its exit code."""
        ...

    def log(self) -> str:
        """What it has written; after `stop`."""
        ...


class Image(Protocol):
    config: ImageConfig
    all_bytes: int

    def started(
        self, place: Path, volume: Path, secret: Path, **variables: str
    ) -> AbstractContextManager[Container]:
        """Run it on a read-only root, without network; it serves when this yields.

        place: an empty folder. volume: the folder that is its volume. secret: a file, at /run/secrets/auth_secret.
        """
        ...


def build(root: Path, place: Path, mirror: str = "http://deb.debian.org/debian") -> Image:
    """Build the image of the Dockerfile in `root`, in an empty folder."""
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "info"], capture_output=True).returncode == 0:
        return DockerImage(root)
    need_namespaces()
    if shutil.which("debootstrap") is None:
        lacks("the image", "a Docker daemon, or debootstrap (on Debian: apt install debootstrap)")
    base = place / "base"
    run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(base), mirror])
    for each in NOT_IN_SLIM:
        shutil.rmtree(base / each)
        (base / each).mkdir()
    return ChrootImage(root, place, base)


class ChrootImage:
    """The steps of the Dockerfile, each in a chroot over the layers so far."""

    def __init__(self, root: Path, place: Path, base: Path) -> None:
        self._root, self._place = root, place
        self._bases = {"debian": base, "scratch": place / "scratch"}
        for each in self._bases.values():
            _give_what_each_container_has(each)
        self._layers: dict[str, Path] = {}  # of each stage what it has beside the base
        self._patterns = (root / ".dockerignore").read_text(encoding="utf-8")
        arguments = {"PYTHON": "debian", "VERSION": "1.2.3"}
        for stage in stages((root / "Dockerfile").read_text(encoding="utf-8"), arguments):
            if stage.base not in self._bases:
                raise NotUnderstood(f"the base {stage.base}")
            self._build(stage, arguments)
            self.config, self._upper = stage.config, self._layers[stage.name]
            self._base = self._bases[stage.base]
        self.all_bytes = size(self._base) + size(self._upper)

    def _build(self, stage: Stage, arguments: Mapping[str, str]) -> None:
        if stage.base != "scratch":
            stage.config.env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self._layers[stage.name] = self._place / f"stage-{stage.name or 'last'}"
        self._layers[stage.name].mkdir()
        for each in stage.instructions:
            if stage.take(each, arguments):
                continue
            if each.name == "RUN":
                self._run(stage, ["/bin/sh", "-c", each.text])
            elif "from" in each.flags:
                self._copy_from(stage, each.flags["from"], stage.expanded(each.text).split())
            else:
                self._copy(stage, stage.expanded(each.text).split())

    def _run(self, stage: Stage, command: list[str]) -> None:
        # What a builder brings so that pip finds its index: it is not part of the image.
        brought = {name: value for name, value in os.environ.items() if name.startswith(_FOR_PIP)}
        mounts: list[str] = []
        for name, value in list(brought.items()):
            if Path(value).is_file():
                brought[name] = f"/run/builder/{name}"
                mounts += ["file", brought[name], value]
            elif Path(value).exists():
                del brought[name]
        if Path("/etc/pip.conf").exists():
            brought["PIP_CONFIG_FILE"] = "/run/builder/pip.conf"
            mounts += ["file", "/run/builder/pip.conf", "/etc/pip.conf"]
        variables = stage.variables | stage.config.env | brought
        layers = Layers([self._bases[stage.base]], self._layers[stage.name])
        way = Way(self._new_place() / "root", variables)
        run(enter(way, layers, command, mounts=mounts, network="host"))

    def _copy_from(self, stage: Stage, source: str, words: Sequence[str]) -> None:
        """What is in a folder that the other stage made; it keeps its owner and mode, which the folder does not."""
        path, target = words
        made, into = self._layers[source] / path.lstrip("/"), self._layers[stage.name] / target.lstrip("/")
        if not made.is_dir():
            raise NotUnderstood(f"COPY --from={source} {' '.join(words)}")
        into.mkdir(parents=True, exist_ok=True)
        run(["cp", "--archive", *map(str, made.iterdir()), str(into)])

    def _copy(self, stage: Stage, words: Sequence[str]) -> None:
        *sources, target = words
        into = self._layers[stage.name] / target.lstrip("/")
        for source in sources:
            if ignored(source, self._patterns):
                raise AssertionError(f".dockerignore leaves {source} out")
            path = self._root / source
            if path.is_dir():  # its content, to a folder of that name
                _copy_tree(
                    path, into, lambda each: ignored(str(each.relative_to(self._root)), self._patterns)
                )
            elif target.endswith("/"):
                into.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, into)
            else:
                raise NotUnderstood(f"COPY {' '.join(words)}")

    def _new_place(self) -> Path:
        place = self._place / uuid.uuid4().hex
        place.mkdir()
        return place

    @contextmanager
    def started(
        self, place: Path, volume: Path, secret: Path, **variables: str
    ) -> Iterator["ChrootContainer"]:
        _give(volume, self.config.user)
        env = self.config.env | {"HOME": "/var/lib/forq", "FORQ_AUTH_SECRET_FILE": "/run/secrets/auth_secret"}
        env |= variables
        mounts = ["tmpfs", "/tmp", "volume", self.config.volumes[0], str(volume)]
        mounts += ["file", "/run/secrets/auth_secret", str(secret)]
        way = Way(place / "root", env, self.config.user, self.config.workdir)
        layers = Layers([self._upper, self._base])
        command = enter(way, layers, [*self.config.entrypoint, *self.config.cmd], mounts=mounts)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                started(process)
                yield ChrootContainer(process, way)
            finally:
                process.kill()  # unshare, and with it process 1 and its namespaces


def _give_what_each_container_has(base: Path) -> None:
    """Make what Docker mounts into a container of any base."""
    for each in ("dev", "etc", "proc", "sys"):
        (base / each).mkdir(parents=True, exist_ok=True)
    (base / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n", encoding="utf-8")
    (base / "etc/resolv.conf").touch()


def _give(folder: Path, user: str) -> None:
    """Let the user of the image write there."""
    if os.geteuid() == 0:
        os.chown(folder, *map(int, user.split(":")))
    else:
        folder.chmod(0o777)


def _copy_tree(source: Path, target: Path, left_out: Callable[[Path], bool] = lambda _: False) -> None:
    def ignore(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if left_out(Path(folder) / name)}

    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=ignore)


class ChrootContainer:
    """Process 1 in its namespaces."""

    def __init__(self, process: "subprocess.Popen[str]", way: Way) -> None:
        self._process, self._way = process, way
        self._log = ""

    def exec(self, *command: str) -> "subprocess.CompletedProcess[str]":
        words = within(child_of(self._process), self._way, command)
        return subprocess.run(words, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, check=False)

    def stop(self) -> int:
        os.kill(child_of(self._process), signal.SIGTERM)
        with killed_after(self._process):
            _, self._log = self._process.communicate()
        return self._process.returncode

    def log(self) -> str:
        return self._log


class DockerImage:
    """The image that Docker builds."""

    def __init__(self, root: Path) -> None:
        self._name = f"forq-test-{uuid.uuid4().hex}"
        run(["docker", "build", "--build-arg", "VERSION=1.2.3", "--tag", self._name, str(root)])
        image = json.loads(run(["docker", "image", "inspect", self._name]))[0]
        said = image["Config"]
        self.config = ImageConfig(
            env=dict(each.split("=", 1) for each in said["Env"]),
            user=said["User"],
            workdir=said["WorkingDir"],
            volumes=list(said["Volumes"]),
            labels=said["Labels"],
            health=said["Healthcheck"]["Test"][1:],
            entrypoint=said["Entrypoint"],
            cmd=said["Cmd"],
        )
        self.all_bytes = image["Size"]

    @contextmanager
    def started(
        self, place: Path, volume: Path, secret: Path, **variables: str
    ) -> Iterator["DockerContainer"]:
        _give(volume, self.config.user)
        options = [
            "--read-only",
            "--tmpfs=/tmp",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--network=none",
        ]
        options += [
            f"--volume={volume}:{self.config.volumes[0]}",
            f"--volume={secret}:/run/secrets/auth_secret:ro",
        ]
        variables["FORQ_AUTH_SECRET_FILE"] = "/run/secrets/auth_secret"
        options += [f"--env={name}={value}" for name, value in variables.items()]
        number = run(["docker", "run", "--detach", *options, self._name]).strip()
        try:
            follow = ["docker", "logs", "--follow", number]
            with subprocess.Popen(follow, stderr=subprocess.PIPE, text=True) as logs:
                started(logs)
                logs.kill()
            yield DockerContainer(number)
        finally:
            run(["docker", "rm", "--force", number])


class DockerContainer:
    """A container of Docker's."""

    def __init__(self, number: str) -> None:
        self._number = number

    def exec(self, *command: str) -> "subprocess.CompletedProcess[str]":
        words = ["docker", "exec", self._number, *command]
        return subprocess.run(words, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, check=False)

    def stop(self) -> int:
        run(["docker", "stop", "-t", "60", self._number])
        return int(run(["docker", "inspect", "--format", "{{.State.ExitCode}}", self._number]))

    def log(self) -> str:
        return run(["docker", "logs", self._number])
