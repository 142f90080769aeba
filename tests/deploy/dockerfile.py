"""Reads a Dockerfile: the instructions that ours uses, in the forms that ours uses. Anything else is an error.

So a test that carries the instructions out does what `docker build` does, or fails. Rules of Docker's that are kept
here: a comment line may stand between the lines of an instruction; variables are those of ARG and ENV so far; an ARG
before the first FROM is for FROM lines alone; RUN is not expanded, its shell has the variables.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

FLAGS = {"COPY": {"from"}, "HEALTHCHECK": {"interval", "timeout", "start-period", "retries"}}
KNOWN = {
    *("ARG", "FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "VOLUME", "EXPOSE"),
    *("HEALTHCHECK", "ENTRYPOINT", "CMD", "LABEL"),
}
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class NotUnderstood(Exception):
    """This Dockerfile has something that is not carried out here."""


@dataclass(frozen=True)
class Instruction:
    name: str
    text: str  # what follows the flags
    flags: Mapping[str, str]


@dataclass
class ImageConfig:
    """What an image says beside its files."""

    env: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    workdir: str = "/"
    volumes: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    health: list[str] = field(default_factory=list)  # the command
    health_flags: Mapping[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)
    cmd: list[str] = field(default_factory=list)


def parse(text: str) -> list[Instruction]:
    """The instructions of a Dockerfile."""
    if re.match(r"#\s*(?:syntax|escape|check)\s*=", text, re.IGNORECASE):
        raise NotUnderstood("a directive for the builder")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
    return [_instruction(line.strip()) for line in joined.splitlines()]


def _instruction(line: str) -> Instruction:
    name, _, rest = line.partition(" ")
    if name not in KNOWN:
        raise NotUnderstood(f"the instruction {name}")
    flags = {}
    rest = rest.strip()
    while found := re.match(r"--([\w-]+)=(\S+)\s+", rest):
        flags[found[1]] = found[2]
        rest = rest[found.end() :]
    if flags.keys() - FLAGS.get(name, set()) or rest.startswith("--"):
        raise NotUnderstood(f"a flag of {line!r}")
    return Instruction(name, rest, flags)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with the values of its variables; all have to be known."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name not in variables:
            raise NotUnderstood(f"the variable {name}, which has no value")
        return variables[name]

    expanded = _VARIABLE.sub(value, text)
    if "$" in _VARIABLE.sub("", text):
        raise NotUnderstood(f"a $ in {text!r}")
    return expanded


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """What ENV and LABEL set."""
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not equals:
            raise NotUnderstood(f"{word!r} without =")
        yield name, value


def exec_form(text: str) -> list[str]:
    """A list of words in JSON. The other form has a shell as the first process, which no signal passes."""
    try:
        words: Any = json.loads(text)
    except ValueError:
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise NotUnderstood(f"{text!r}, which is not in the exec form")
    return words


def stages(text: str, arguments: Mapping[str, str]) -> "Iterator[Stage]":
    """The stages of a Dockerfile, each without the instructions that are for the builder alone.

    arguments: those of the build (`--build-arg`).
    """
    of_all: dict[str, str] = {}
    found: Stage | None = None
    for each in parse(text):
        if each.name == "FROM":
            if found is not None:
                yield found
            base, _, name = expand(each.text, of_all).partition(" AS ")
            found = Stage(name, base)
        elif found is not None:
            found.instructions.append(each)
        elif each.name == "ARG":
            of_all |= argument(each.text, arguments)
        else:
            raise NotUnderstood(f"{each.name} before FROM")
    if found is not None:
        yield found


def argument(text: str, arguments: Mapping[str, str]) -> dict[str, str]:
    """What an ARG declares: its value of the build, or its default."""
    name, equals, default = text.partition("=")
    if name in arguments:
        return {name: arguments[name]}
    return {name: expand(default, {})} if equals else {}


@dataclass
class Stage:
    """A FROM and what follows it. `settings` carries out what concerns no file."""

    name: str  # "" for the last one
    base: str
    instructions: list[Instruction] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)  # of ARG
    config: ImageConfig = field(default_factory=ImageConfig)

    def expanded(self, text: str) -> str:
        return expand(text, self.variables | self.config.env)

    def take(self, each: Instruction, arguments: Mapping[str, str]) -> bool:
        """Carry out an instruction that concerns no file; False for COPY and RUN."""
        config = self.config
        match each.name:
            case "COPY" | "RUN":
                return False
            case "ARG":
                self.variables |= argument(each.text, arguments)
            case "ENV":
                config.env |= dict(pairs(self.expanded(each.text)))
            case "LABEL":
                config.labels |= dict(pairs(self.expanded(each.text)))
            case "USER":
                config.user = self.expanded(each.text)
            case "WORKDIR":
                config.workdir = self.expanded(each.text)
            case "VOLUME":
                config.volumes += exec_form(each.text)
            case "EXPOSE":
                config.ports += map(int, each.text.split())
            case "HEALTHCHECK":
                if not each.text.startswith("CMD "):
                    raise NotUnderstood(each.text)
                config.health, config.health_flags = exec_form(each.text.removeprefix("CMD ")), each.flags
            case "ENTRYPOINT":
                config.entrypoint = exec_form(each.text)
            case "CMD":
                config.cmd = exec_form(each.text)
        return True


def ignored(path: str, patterns: str) -> bool:
    """Whether .dockerignore leaves a path out: the last pattern that matches it, or what it is in, decides."""
    parts = path.split("/")
    names = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    left_out = False
    for line in patterns.splitlines():
        if line and not line.startswith("#"):
            pattern = line.removeprefix("!")
            if any(_matches(name, pattern) for name in names):
                left_out = not line.startswith("!")
    return left_out


def _matches(name: str, pattern: str) -> bool:
    if pattern == "*":
        return "/" not in name
    if pattern.startswith("**/"):
        return name.rpartition("/")[2] == pattern.removeprefix("**/")
    if re.search(r"[*?\[\\]|^/", pattern):
        raise NotUnderstood(f"the pattern {pattern}")
    return name == pattern
