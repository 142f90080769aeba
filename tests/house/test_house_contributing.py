"""CONTRIBUTING.md names what is there, its recipes hold, and what editors and hooks read agrees with pyproject."""

import ast
import configparser
import re
import tomllib
from pathlib import Path

import pytest

from forq_trio.model.commands import COMMANDS
from forq_trio.model.messages.types import MessageInfo
from support.by_id import BY_ID
from support.source import FOLDERS, parsed

CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"[\w.-]+\.(?:md|py|toml|yaml|sql)")
FREE = (".venv/", "http:", "https:")
"""What is no file of ours, though it has a slash."""


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project(root) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def paths_named(text: str) -> set[str]:
    """The paths in the code of a page; <name> stands for any name."""
    words = [word for code in CODE.findall(FENCED.sub("", text)) for word in code.split()]
    return {
        re.sub(r"<\w+>", "*", word).rstrip("/")
        for word in words
        if ("/" in word or FILE.fullmatch(word)) and not word.startswith(FREE)
    }


def missing_paths(text: str, root: Path) -> list[str]:
    return sorted(path for path in paths_named(text) if not any(root.glob(path)))


def test_every_path_that_is_named_exists(page, root) -> None:
    assert len(paths_named(page)) > 40
    assert missing_paths(page, root) == []


def test_the_architecture_names_every_package_and_nothing_else(root) -> None:
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.+?`) \| .+ \|$", text, re.MULTILINE)
    listed = {word for cell in cells for word in CODE.findall(cell)}
    package = root / "forq_trio"
    there = {
        path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert there - {"__init__", "__main__", "version"} - listed == set()
    places = listed | {path for path in paths_named(text) if not path.startswith("/")}
    named = {place: (package / place, package / f"{place}.py", root / place) for place in places}
    assert {place for place, paths in named.items() if not any(path.exists() for path in paths)} == set()


def test_a_path_that_does_not_exist_is_found(root) -> None:
    text = "Run `script/tset -k x`, see `forq_trio/<name>/`, `forq_trio/<name>.go` and `nowhere.md`.\n```\na/b\n```\n"
    assert missing_paths(text, root) == ["forq_trio/*.go", "nowhere.md", "script/tset"]


def test_every_script_is_explained(page, root) -> None:
    scripts = {path.name for path in (root / "script").iterdir()} - {"environment", "server"}
    assert {name for name in scripts if f"`script/{name}" not in page} == set()


def test_every_command_is_drawn_at_random(root) -> None:
    """By its name, for which lint sees to it that what is imported is used, or by its form."""
    drawn = (root / "tests" / "conformance" / "random_commands.py").read_text(encoding="utf-8")
    assert "in BY_ID" in drawn
    kinds = {kind.__name__ for kind in COMMANDS if kind not in BY_ID}
    assert kinds - set(re.findall(r"\w+", drawn)) == set()


def test_the_files_of_an_operation_are_those_of_its_recipe(page, root) -> None:
    """The example of the recipe is `cancel`: the code names its command where the recipe says, and nowhere else."""
    recipe = page.split("## Recipe: add an operation\n", 1)[1].split("\n## ", 1)[0]
    assert "`cancel` is a small example" in recipe
    steps = re.findall(r"^\| (\d+)\. .+? \| (.+?) \| ", recipe, re.MULTILINE)
    listed = {path for step, where in steps if step in "1234" for path in paths_named(where)}
    pattern = {"tests/conformance/test_cancel.py"}
    names = {
        "forq_trio/broker/bound_commands.py",  # a better name than that of its class, in a refusal
        "tests/conformance/long_commands.py",  # some commands of each kind, for histories with small bounds
    }
    places = ("forq_trio", "tests/oracle", "tests/conformance")
    found = {
        str(path.relative_to(root))
        for place in places
        for path in (root / place).rglob("*.py")
        if not path.name.startswith("test_") and names_cancel(path)
    }
    assert found - names == {path for path in listed if path.endswith(".py")} - pattern


def test_the_number_of_files_of_an_operation_is_that_of_its_recipe(page) -> None:
    recipe = page.split("## Recipe: add an operation\n", 1)[1].split("\n## ", 1)[0]
    steps = re.findall(r"^\| \d+\. .+? \| (.+?) \| ", recipe, re.MULTILINE)
    places = {path for where in steps for path in paths_named(where)}
    documents = {path for path in places if path.endswith(".md")}
    tests = {path for path in places if path.startswith("tests/")}
    said = f"{len(places)} files, {len(documents)} of them documents and {len(tests)} in the tests."
    assert f"These are {said}" in recipe


def test_the_endpoint_client_and_command_of_an_operation_are_in_the_files_of_its_recipe(page, root) -> None:
    """Every file of steps 5 to 7 names `cancel`."""
    recipe = page.split("## Recipe: add an operation\n", 1)[1].split("\n## ", 1)[0]
    steps = re.findall(r"^\| (\d+)\. .+? \| (.+?) \| ", recipe, re.MULTILINE)
    listed = {path for step, where in steps if step in "567" for path in paths_named(where)}
    assert len(listed) == 7
    assert {
        path for path in listed if "cancel" not in (root / path).read_text(encoding="utf-8").lower()
    } == set()


def test_the_members_of_a_message_are_listed_in_the_files_of_its_recipe(page, root) -> None:
    """And nowhere else; `engine.sql` is where they are written. Pages that are made of them are not edited."""
    recipe = page.split("## Recipe: add a member of a message\n", 1)[1].split("\n## ", 1)[0]
    steps = re.findall(r"^\| \d+\. .+? \| (.+?) \| ", recipe, re.MULTILINE)
    listed = {
        path for where in steps for path in paths_named(where) if FILE.fullmatch(path.rpartition("/")[2])
    }
    found = {
        str(path.relative_to(root))
        for place in ("forq_trio", "pyspark_forq", "tests/oracle", "docs")
        for path in (root / place).rglob("*")
        if path.suffix in (".py", ".sql", ".md") and path.parent.name not in ("migrations", "reference")
        if names_all_members(path.read_text(encoding="utf-8"))
    }
    assert found == listed


def names_all_members(text: str) -> bool:
    """Whether a file names every member of a message, as in Python, in JSON or by its column."""
    words = set(re.findall(r"\w+", text))
    columns = {"sequence": "seq", "group": "group_id", "keyed": "kind"}
    names = zip(MessageInfo.__struct_fields__, MessageInfo.__struct_encode_fields__, strict=True)
    return all(words & {name, encoded, columns.get(name, name)} for name, encoded in names)


def names_cancel(path: Path) -> bool:
    """Whether the code of a file, not only its prose, names the command."""
    return "Cancel" in path.read_text(encoding="utf-8") and any(
        "Cancel" in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", ""))
        for node in ast.walk(parsed(path))
    )


def test_the_start_page_links_every_page(root) -> None:
    """From there everything can be found; the contents of the site are made of it."""
    index = root / "docs" / "index.md"
    links = re.findall(r"^- \[.+\]\((.+\.md)\)$", index.read_text(encoding="utf-8"), re.MULTILINE)
    linked = {str((index.parent / link).resolve().relative_to(root)) for link in links}
    assert len(links) == len(linked)
    pages = [*(root / "docs").rglob("*.md"), *root.glob("*.md")]
    names = {str(path.relative_to(root)) for path in pages} - {"docs/index.md"}
    assert names - linked == set()
    assert {name for name in linked if not (root / name).exists()} == set()


def test_editors_break_lines_where_ruff_does(root, project) -> None:
    editors = configparser.ConfigParser()
    editors.read_string("[top]\n" + (root / ".editorconfig").read_text(encoding="utf-8"))
    assert editors["top"]["root"] == "true"
    assert int(editors["*.py"]["max_line_length"]) == project["tool"]["ruff"]["line-length"]


def test_hooks_run_our_own_tools_and_fetch_nothing(root, project) -> None:
    hooks = (root / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"repo: *(\S+)", hooks)) == {"local"}
    assert set(re.findall(r"language: *(\S+)", hooks)) == {"system"}
    tools = re.findall(r"entry: *\.venv/bin/([\w-]+)", hooks)
    assert len(tools) == len(re.findall(r"entry:", hooks)) == len(re.findall(r"- id:", hooks))
    installed = project["project"]["optional-dependencies"]["dev"]
    assert {tool for tool in tools if not any(re.match(rf"{tool}\b", line) for line in installed)} == set()


def test_files_are_written_as_editors_are_told(root) -> None:
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*")] + list(root.glob("*"))
    kinds = {".py", ".md", ".sql", ".toml", ".yaml", ".yml", ".lua"}
    wrong = []
    for path in sorted(paths):
        if path.is_file() and (path.suffix in kinds or path.parent.name == "script"):
            content = path.read_bytes()
            if content and (
                not content.endswith(b"\n") or re.search(rb"[ \t]$|\r|^\t", content, re.MULTILINE)
            ):
                wrong.append(str(path.relative_to(root)))
    assert wrong == []
