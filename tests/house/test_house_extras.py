"""What pip installs: the base is the client with few packages, and each extra brings what its part imports."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import forq_trio
from forq_trio.cli.commands import _COMMANDS
from forq_trio.model.extras import OF_COMMANDS
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, environment, real_server
from support.source import inside

PACKAGES_MAX = 8
OWN = "forq-trio"
IN_THE_CLIENT = ("client", "model", "wire")
EMBEDDED = forq_trio._EMBEDDED
WITHOUT_SPARK = ("", "cli", "django", "embed", "flask", "metrics", "otel", "postgres", "server")
IMPORTED_BY_NAME = {"django-tasks", "pydantic-settings", "tzdata"}
"""What no statement imports: a module whose name depends on what is installed, or what another library looks for."""
ADVISED = re.compile(r"(?<![\w.])(?:forq-trio|\.|/src)\[([a-z][a-z,]+)\](?=['\"`=])")

WITHOUT = """
import importlib.abc, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""


@pytest.fixture(scope="module")
def packages(declared) -> dict[str, set[str]]:
    """Which packages pip installs for each extra, the base's and those that packages need included."""
    return {extra: set(installed(declared, ("", extra))) - {OWN} for extra in declared}


def installed(declared: dict[str, list[Requirement]], extras: Iterable[str]) -> Iterator[str]:
    """The packages that these extras come to, as the metadata of what is installed here says."""
    waiting = [requirement for extra in extras for requirement in declared[extra]]
    seen = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        key = (name, frozenset(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        yield name
        if name == OWN:
            waiting += [each for extra in wanted.extras for each in declared[extra]]
            continue
        try:
            texts = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # an extra that is not installed here
            continue
        contexts = [{"extra": extra} for extra in ("", *wanted.extras)]
        for each in map(Requirement, texts):
            if each.marker is None or any(map(each.marker.evaluate, contexts)):
                waiting.append(each)


def named(declared: dict[str, list[Requirement]], extra: str) -> set[str]:
    """The packages that pyproject.toml itself names for this extra, for the base, and for extras of ours in it."""
    found = set()
    for each in (*declared[""], *declared[extra]):
        if canonicalize_name(each.name) == OWN:
            found |= {name for inner in each.extras for name in named(declared, inner)}
        else:
            found.add(canonicalize_name(each.name))
    return found


@pytest.fixture(scope="module")
def imports(modules) -> dict[str, set[str]]:
    """What each of our modules may import while it runs: modules of ours without our name in front, and libraries."""
    return {name: set(run_time_imports(tree, modules)) for name, tree in modules.items()}


def run_time_imports(tree: ast.AST, modules: dict[str, ast.Module]) -> Iterator[str]:
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (ours(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            children = [ours(f"{source}.{alias.name}") for alias in node.names]
            yield from (child if child in modules else ours(source) for child in children)
        pending += inside(node)


def ours(module: str) -> str:
    return module.removeprefix("forq_trio.")


WHERE_ASKED_FOR = {
    "system",
    "embedded.blocking",
    "worker.payloads",
    "storage.postgres.engine",
    "storage.postgres.open",
    "storage.postgres.move",
    "pgq.tables",
    "broker.tracing",
    "http.tracing",
    "worker.tracing",
}
"""What is imported by those alone who ask for it, by a URL or an SDK that they set up; it says which extra it needs.
Payloads are read by pydantic for those alone whose program has its models.
"""


def libraries(entries: Iterable[str], imports: dict[str, set[str]]) -> set[str]:
    """The packages that these modules, and what they import of ours, import."""
    entries = set(entries)
    waiting, seen, found = list(entries), set(), set()
    distributions = packages_distributions()
    while waiting:
        name = waiting.pop()
        if name in seen or name in WHERE_ASKED_FOR - entries:
            continue
        seen.add(name)
        if name in imports:
            waiting += imports[name]
            continue
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("forq_trio", "pyspark_forq"):
            found |= {canonicalize_name(each) for each in distributions.get(top, [top]) if brings(each, name)}
    return found


@cache
def packages_distributions() -> dict[str, list[str]]:
    """By package the distributions that have it: for 0.2 s all of their files are read."""
    return dict(metadata.packages_distributions())


@cache
def brings(distribution: str, module: str) -> bool:
    """Whether a module is of this distribution, and not of another one in the same namespace."""
    folder = f"{module.replace('.', '/')}/"
    return "." not in module or any(
        str(each).startswith((folder, f"{folder[:-1]}.")) for each in metadata.files(distribution) or ()
    )


def entries(extra: str, imports: dict[str, set[str]]) -> set[str]:
    """The modules that have to work with this extra alone."""
    commands = {
        f"cli.{each.module}" for name, each in _COMMANDS.items() if OF_COMMANDS.get(name, "cli") == extra
    }
    homes = forq_trio._homes()
    match extra:
        case "":
            return {home for name, home in homes.items() if name not in EMBEDDED} | {"client.sync"}
        case "embed":
            return {homes[name] for name in EMBEDDED}
        case "metrics":
            return {"worker.metrics"}
        case "otel":
            return {"worker.tracing", "client.tracing"}
        case "flask":
            return {"worker.flask"}
        case "django":
            return {name for name in imports if name.startswith("worker.django")}
        case "spark":
            return commands | {name for name in imports if name.startswith("pyspark_forq")}
    return commands


@pytest.mark.parametrize("extra", [*WITHOUT_SPARK, "spark"])
def test_an_extra_brings_what_its_part_imports(extra, packages, imports) -> None:
    wanted = libraries(entries(extra, imports), imports)
    assert wanted, "nothing was found"
    assert wanted <= packages[extra], f"{extra or 'the base'} lacks {wanted - packages[extra]}"


@pytest.mark.parametrize("extra", [*WITHOUT_SPARK, "spark"])
def test_an_extra_names_what_its_part_imports(extra, declared, imports) -> None:
    """What another library brings may be any version of it, and is gone when that library needs it no more."""
    unnamed = libraries(entries(extra, imports), imports) - named(declared, extra)
    assert not unnamed, f"{extra or 'the base'} has {unnamed} only because other libraries need them"


@pytest.mark.parametrize("extra", WITHOUT_SPARK)
def test_an_extra_brings_nothing_that_its_part_does_not_import(extra, declared, imports) -> None:
    direct = {canonicalize_name(each.name) for each in declared[extra]} - {OWN, *IMPORTED_BY_NAME}
    assert direct <= libraries(entries(extra, imports), imports)


def test_the_base_is_small(packages) -> None:
    assert len(packages[""]) <= PACKAGES_MAX, sorted(packages[""])


def test_the_server_has_what_embedding_and_commands_need(packages) -> None:
    assert packages["server"] >= packages["embed"] | packages["cli"]
    assert packages["dev"] >= packages["server"]


def run(program: str, hidden: set[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program that finds none of the `hidden` packages."""
    command = [sys.executable, "-c", WITHOUT.format(hidden=hidden) + program, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, env=environment(FORQ_URL="")
    )


@pytest.fixture(scope="module")
def beyond_the_base(packages) -> set[str]:
    """The importable names of all packages that the base does not bring."""
    return {
        top
        for top, names in metadata.packages_distributions().items()
        if not {canonicalize_name(name) for name in names} & (packages[""] | {OWN})
    }


def test_the_clients_load_no_module_of_the_server(beyond_the_base) -> None:
    program = (
        "from forq_trio import AsyncForqClient, ForqClient, NewMessage, Overloaded\n"
        "print(*{name.split('.')[1] for name in sys.modules if name.startswith('forq_trio.')})"
    )
    done = run(program, beyond_the_base)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= set(IN_THE_CLIENT)


def test_each_name_is_of_the_client_or_names_its_extra() -> None:
    others = {
        name for name, home in forq_trio._homes().items() if home.partition(".")[0] not in IN_THE_CLIENT
    }
    assert others == set(EMBEDDED)


@pytest.mark.parametrize("name", EMBEDDED)
def test_what_is_embedded_names_its_extra(name, beyond_the_base) -> None:
    done = run(f"from forq_trio import {name}", beyond_the_base)
    last = done.stderr.splitlines()[-1]
    advice = f"{name} needs more than the client: pip install 'forq-trio[embed]'"
    assert last == f"forq_trio.model.extras.ExtraMissing: {advice}"


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        ((), "cli"),
        (("send", "q", "x"), "cli"),
        (("work", "no.module:app"), "cli"),
        (("serve",), "server"),
        (("serve", "--help"), "server"),
        (("check",), "server"),
        (("pipeline", "report", "x"), "spark"),
    ],
)
@pytest.mark.parametrize("has_cli", [False, pytest.param(True, marks=pytest.mark.tier2)])
def test_a_command_names_its_extra(arguments, extra, has_cli, beyond_the_base, packages, declared) -> None:
    hidden = beyond_the_base - ({"click", "rich"} if has_cli else set())
    done = run("from forq_trio.cli import main\nmain()", hidden, *arguments)
    if has_cli and extra == "cli":
        assert "pip install" not in done.stderr
        return
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    name = " ".join(("forq", *arguments[:1]))
    advice = f"forq: {name} needs more than the client: pip install 'forq-trio[{extra}]'\n"
    assert done.stderr == advice


def test_the_version_needs_no_extra(beyond_the_base) -> None:
    done = run("from forq_trio.cli import main\nmain()", beyond_the_base, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"forq-trio {metadata.version(OWN)}\n", "")


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("worker.metrics", "metrics"),
        ("worker.tracing", "otel"),
        ("client.tracing", "otel"),
        ("worker.flask", "flask"),
        ("worker.django", "django"),
    ],
)
def test_what_a_program_imports_for_its_worker_names_its_extra(module, extra, beyond_the_base) -> None:
    done = run(f"import forq_trio.worker, forq_trio.{module}", beyond_the_base)
    advice = f"forq_trio.{module} needs more than the client: pip install 'forq-trio[{extra}]'"
    assert done.stderr.splitlines()[-1] == f"forq_trio.model.extras.ExtraMissing: {advice}"


def test_pgqs_tables_name_their_extra_to_programs_and_commands(beyond_the_base) -> None:
    advice = "forq_trio.pgq needs more than the client: pip install 'forq-trio[postgres]'"
    done = run("from forq_trio import pgq", beyond_the_base)
    assert done.stderr.splitlines()[-1] == f"forq_trio.model.extras.ExtraMissing: {advice}"
    command = ("pgq", "check", "t", "--db-url", "postgresql:///d")
    done = run("from forq_trio.cli import main\nmain()", beyond_the_base - {"click", "rich"}, *command)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"forq: {advice}\n")


def test_a_module_of_ours_that_is_missing_is_no_extra(beyond_the_base) -> None:
    program = (
        "from forq_trio.model.extras import needing\nwith needing('cli', 'x'):\n  import forq_trio.nothing"
    )
    assert run(program, beyond_the_base).stderr.splitlines()[-1].startswith("ModuleNotFoundError: ")


SEND = """
from forq_trio import ForqClient
import sys
with ForqClient(sys.argv[1], sys.argv[2]) as client:
    client.produce("orders", "from few packages")
    print(client.receive("orders")[0].content)
"""


@pytest.mark.tier2
@pytest.mark.process
def test_a_fresh_environment_has_few_packages_and_sends(root, tmp_path: Path) -> None:
    """Skipped where pip reaches no index."""
    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "install", "--quiet", root], capture_output=True, text=True, cwd=tmp_path)
    if "No matching distribution" in done.stderr:
        pytest.skip("pip reaches no index here")
    assert done.returncode == 0, done.stderr
    listed = subprocess.run([*pip, "list", "--format=freeze"], capture_output=True, text=True, check=True)
    names = {line.partition("==")[0] for line in listed.stdout.split()} - {"pip", "setuptools"}
    assert OWN in names
    assert len(names - {OWN}) <= PACKAGES_MAX, sorted(names)
    serving = subprocess.run(
        [tmp_path / "venv/bin/forq", "serve"], capture_output=True, text=True, check=False
    )
    advice = "forq: forq serve needs more than the client: pip install 'forq-trio[server]'\n"
    assert (serving.returncode, serving.stderr) == (2, advice)
    with real_server(tmp_path / "forq.db") as server:
        sent = subprocess.run(
            [python, "-I", "-c", SEND, server.url, SECRET], capture_output=True, text=True, check=True
        )
    assert sent.stdout == "from few packages\n"


def test_every_extra_that_is_advised_is_there(root, declared) -> None:
    assert _advised("`pip install 'forq-trio[server,spark]'`, uvx --from \"forq-trio[cli]\" forq") == {
        *("server", "spark", "cli")
    }
    assert _advised("pip install '.[embed]' '/src[otel]' 'pyspark[connect]'") == {"embed", "otel"}
    folders = ("forq_trio", "pyspark_forq", "docs", "examples", "script", "bench", "tests")
    places = (place for folder in folders for place in (root / folder).rglob("*"))
    texts = [place for place in places if place.suffix in (".py", ".md", ".html", ".sh")]
    found = {
        place.relative_to(root).as_posix(): _advised(place.read_text(encoding="utf-8"))
        for place in (*texts, *root.glob("*.md"))
    }
    assert len(set().union(*found.values())) > 5
    unknown = {place: extras - declared.keys() for place, extras in found.items()}
    assert {place: extras for place, extras in unknown.items() if extras} == {}


def _advised(text: str) -> set[str]:
    """The extras of this package that a text names where it says what to install."""
    return {extra for found in ADVISED.findall(text) for extra in found.split(",")}
