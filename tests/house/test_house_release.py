"""What is released: its version, address, licences and changelog, and the two files that script/release makes."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from forq_trio.storage.migrate import load
from support.needs import lacks
from support.processes import WAIT_SECONDS_MAX
from support.programs import INSTALLED, python_of

RELEASES = re.compile(r"^## (\S+) - (\d{4}-\d\d-\d\d)$", re.MULTILINE)
DATABASES = re.compile(r"^\| (\d+\.\d+\.\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
# How a licence's text begins, and what it is called by SPDX.
LICENCES = {
    "MIT License": "MIT",
    "Zero-Clause BSD": "0BSD",
    "This Font Software is licensed under the SIL Open Font License, Version 1.1": "OFL-1.1",
}
FROM_ELSEWHERE = {
    "app.css": {"daisyui-LICENSE.txt", "tailwindcss-LICENSE.txt"},
    "htmx.min.js": {"htmx-LICENSE.txt"},
    "fonts/inter.woff2": {"fonts/Inter-LICENSE.txt"},
    "fonts/mono.woff2": {"fonts/JetBrainsMono-LICENSE.txt"},
}
"""What in forq_trio/ui/static somebody else made, and the texts of its licences there."""
FOR_DEVELOPERS = {"dev", "fuzz", "bench", "docs", "release", "reload"}
"""Extras that docs/python.md does not offer; docs/cli.md tells of the last one."""
MIB = 2**20
WHEEL_BYTES_MAX = 2 * MIB
NEEDS = ("build", "hatchling", "hatch_fancy_pypi_readme", "twine")


@pytest.fixture(scope="module")
def project(root) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def tracked(root) -> frozenset[str]:
    """The files of this clone that a commit would have."""
    if not (root / ".git").exists():
        pytest.skip("this is no clone")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    return frozenset(name for name in names if name and (root / name).exists())


def test_the_changelog_has_a_section_for_this_version(root, project) -> None:
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[0] == "Unreleased"
    released = [heading.partition(" - ")[0] for heading in headings[1:]]
    assert released == [version for version, _ in RELEASES.findall(text)], "a version has no date"
    assert released[0] == project["version"]
    dates = [date for _, date in RELEASES.findall(text)]
    assert dates == sorted(dates, reverse=True)
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= KINDS


def test_the_table_of_databases_is_true(root, project) -> None:
    """Its last row is this version; a patch has the tables of its minor version."""
    rows = DATABASES.findall((root / "docs" / "upgrading.md").read_text(encoding="utf-8"))
    latest = [str(load(f"forq_trio.storage.{engine}")[-1].version) for engine in ("sqlite", "postgres")]
    assert rows[-1] == (project["version"], *latest)
    minors: dict[str, tuple[str, ...]] = {}
    for version, *tables in rows:
        assert minors.setdefault(version.rpartition(".")[0], tuple(tables)) == tuple(tables), version


def test_whoever_says_where_the_project_is_says_what_the_project_file_says(root, project, tracked) -> None:
    """Most say nothing: a link inside of the repository is relative."""
    home = project["urls"]["Homepage"]
    assert all(url.startswith(home) for url in project["urls"].values())
    address = re.compile(rb"https?://(?:www\.)?git(?:hub|lab)\.com/[\w.-]+/forq[-_]trio\b")
    said = {path: set(address.findall((root / path).read_bytes())) for path in tracked}
    assert said["pyproject.toml"] == {home.encode()}
    assert {path: found for path, found in said.items() if found - {home.encode()}} == {}


def test_the_licence_names_those_of_all_that_is_packed(root, project) -> None:
    static = root / "forq_trio" / "ui" / "static"
    texts = {path.relative_to(static).as_posix(): path for path in static.rglob("*LICENSE*")}
    assert set(texts) == set().union(*FROM_ELSEWHERE.values())
    assert {name for name in FROM_ELSEWHERE if not (static / name).exists()} == set()
    assert set(map(licence, (root / "LICENSE", *texts.values()))) == set(project["license"].split(" AND "))
    packed = {path for pattern in project["license-files"] for path in root.glob(pattern)}
    assert packed == {root / "LICENSE", *texts.values()}


def licence(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    (found,) = {name for beginning, name in LICENCES.items() if beginning in text}
    return found


def test_the_page_on_python_offers_every_extra(root, project) -> None:
    page = (root / "docs" / "python.md").read_text(encoding="utf-8")
    offered = set(re.findall(r"^\|.*`'forq-trio\[(\w+)\]'`.* \|", page, re.MULTILINE))
    offered |= set(re.findall(r"`'forq-trio\[(\w+)\]'`", page))
    assert offered == project["optional-dependencies"].keys() - FOR_DEVELOPERS


def test_every_python_that_is_named_is_looked_for(root, project) -> None:
    """By the classifiers, by script/environment, and by the lower bound."""
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    script = (root / "script" / "environment").read_text(encoding="utf-8")
    (candidates,) = re.findall(r"\$\{PYTHON:-python3 (.+?)\}", script)
    assert candidates.replace("python", "").split() == named[::-1]
    assert project["requires-python"] == f">={named[0]}"


def test_the_documents_that_a_release_runs_are_there(root) -> None:
    script = (root / "script" / "release").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^DOCUMENTS=\(\n(.+?)^\)", script, re.MULTILINE | re.DOTALL)
    assert len(listed.split()) > 2
    for each in listed.split():
        path, _, name = each.partition("::")
        assert f"def {name or 'test_'}" in (root / path).read_text(encoding="utf-8"), each


class Clone:
    """A repository with one commit, of what is tracked here as it stands, and with this Python's environment."""

    def __init__(self, root: Path, tracked: frozenset[str], place: Path) -> None:
        if missing := [name for name in NEEDS if importlib.util.find_spec(name) is None]:
            lacks("releases", f"{', '.join(missing)} (pip install -e '.[release]')")
        self.place = place
        for name in tracked:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, place / name)
        self.git("init", "--quiet")
        self.commit()
        python = place / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)

    def git(self, *arguments: str) -> None:
        who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
        subprocess.run(["git", *who, *arguments], cwd=self.place, check=True)

    def commit(self) -> None:
        self.git("add", "--all", "--force", "--", ".", ":!.venv")
        self.git("commit", "--quiet", "--message", "As it stands")

    def release(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run script/release --quick."""
        sum_of = ["sh", "-c", "cksum < pyproject.toml | tr ' ' -"]
        marker = subprocess.run(sum_of, cwd=self.place, capture_output=True, text=True, check=True).stdout
        (self.place / ".venv" / "installed").write_text(f"{marker.strip()} dev,release\n", encoding="utf-8")
        command = ["script/release", "--quick", *arguments]
        return subprocess.run(
            command, cwd=self.place, capture_output=True, text=True, timeout=5 * WAIT_SECONDS_MAX, check=False
        )


@pytest.fixture
def clone(root, tracked, tmp_path) -> Clone:
    return Clone(root, tracked, tmp_path / "clone")


@pytest.fixture(scope="module")
def dist(root, tracked, tmp_path_factory) -> Iterator[Path]:
    """The folder with the sdist and the wheel: of script/release, which sets FORQ_TEST_DIST, or made here."""
    if released := os.environ.get("FORQ_TEST_DIST"):
        yield Path(released)
        return
    place = tmp_path_factory.mktemp("released")
    done = Clone(root, tracked, place / "clone").release("--to", str(place / "dist"))
    assert done.returncode == 0, done.stderr
    (place / "said").write_text(done.stdout, encoding="utf-8")
    yield place / "dist"


@pytest.fixture
def wheel(dist) -> Iterator[zipfile.ZipFile]:
    (path,) = dist.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


@pytest.fixture
def metadata(wheel) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


@pytest.mark.tier2
def test_it_says_what_it_made(dist, project) -> None:
    if "FORQ_TEST_DIST" in os.environ:
        pytest.skip("script/release says it at its end")
    said = (dist.parent / "said").read_text(encoding="utf-8")
    paths = sorted(dist.iterdir())
    version = project["version"]
    assert [path.name for path in paths] == [
        f"forq_trio-{version}-py3-none-any.whl",
        f"forq_trio-{version}.tar.gz",
    ]
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}  {path.stat().st_size:,} bytes"
        for path in paths
    ]
    assert said.splitlines()[:2] == sums
    assert "Nothing was uploaded." in said


@pytest.mark.tier2
def test_the_wheel_has_the_packages_and_their_licences_alone(wheel, tracked, project) -> None:
    names = set(wheel.namelist())
    info = f"forq_trio-{project['version']}.dist-info/"
    packages = {name for name in tracked if name.startswith(("forq_trio/", "pyspark_forq/"))}
    assert {name for name in names if not name.startswith(info)} == packages
    assert {name.removeprefix(f"{info}licenses/") for name in names if "/licenses/" in name} == {
        "LICENSE",
        *(f"forq_trio/ui/static/{name}" for names in FROM_ELSEWHERE.values() for name in names),
    }
    assert sum(each.compress_size for each in wheel.infolist()) < WHEEL_BYTES_MAX


@pytest.mark.tier2
def test_the_sdist_has_what_is_tracked_and_nothing_else(dist, tracked, project) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as opened:
        files = {member.name.partition("/")[2] for member in opened if member.isfile()}
    assert files - {"PKG-INFO"} == tracked


@pytest.mark.tier2
def test_the_index_shows_what_the_project_says(metadata, project) -> None:
    assert metadata["Version"] == project["version"]
    assert metadata["License-Expression"] == project["license"]
    assert metadata["Requires-Python"] == project["requires-python"]
    assert dict(line.split(", ", 1) for line in metadata.get_all("Project-URL")) == project["urls"]
    assert set(metadata.get_all("Provides-Extra")) == project["optional-dependencies"].keys()


@pytest.mark.tier2
def test_links_and_pictures_of_the_readme_lead_somewhere_from_the_index(metadata, project, root) -> None:
    readme = metadata.get_payload()
    assert isinstance(readme, str)
    assert readme.startswith((root / "README.md").read_text(encoding="utf-8")[:20])
    prose = re.sub(r"^```.*?^```", "", readme, flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)", prose) + re.findall(r"src=\"([^\"]+)", prose)
    assert len(targets) > 5
    assert [target for target in targets if not re.match(r"https?://|#", target)] == []
    of_ours = {
        target
        for target in targets
        if target.startswith(f"{project['urls']['Homepage']}/") and "/v" in target
    }
    paths = {re.sub(r"^.*?/(?:blob|raw)/v[^/]+/", "", target).partition("#")[0] for target in of_ours}
    assert {path for path in paths if not (root / path).exists()} == set()


@pytest.mark.tier2
def test_a_build_that_depends_on_more_than_the_commit_is_refused(clone) -> None:
    hook = "\n[tool.hatch.build.targets.wheel.hooks.custom]\npath = 'hook.py'\n"
    with (clone.place / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(hook)
    (clone.place / "hook.py").write_text(
        "import uuid\nfrom pathlib import Path\n"
        "from hatchling.builders.hooks.plugin.interface import BuildHookInterface\n\n\n"
        "class Hook(BuildHookInterface):\n"
        "    def initialize(self, version, build_data):\n"
        "        Path(self.root, 'forq_trio', 'made.py').write_text(f'# {uuid.uuid4()}')\n",
        encoding="utf-8",
    )
    clone.commit()
    done = clone.release()
    assert done.returncode == 1
    assert done.stderr.endswith("release: two builds of one commit differ\n"), done.stderr
    assert not (clone.place / "dist").exists()


@pytest.mark.tier2
def test_a_tag_of_another_version_is_refused(clone, project) -> None:
    clone.git("tag", "v9.9.9")
    done = clone.release()
    assert (done.returncode, done.stdout) == (1, "")
    said = f"release: the commit has the tag v9.9.9, and in pyproject.toml the version {project['version']}\n"
    assert done.stderr == said


@pytest.mark.tier2
@pytest.mark.skipif(INSTALLED is None, reason="script/release installs the wheel")
@pytest.mark.parametrize(
    ("extra", "lacking"),
    [("client", {"apsw", "click"}), ("embed", {"click", "quart"}), ("server", {"psycopg"})],
)
def test_documents_run_on_the_wheel_with_no_more_than_their_extra(extra, lacking, tmp_path, project) -> None:
    program = (
        "import importlib.util, sys, forq_trio\n"
        "print(forq_trio.__version__, forq_trio.__file__)\n"
        "print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
    )
    command = [python_of(extra), "-c", program, *lacking]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    found, others = done.stdout.split("\n")[:2]
    assert found.startswith(f"{project['version']} {INSTALLED}/{extra}/")
    assert others == ""
