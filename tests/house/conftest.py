"""The source of the project, as the house's rules look at it."""

import ast
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from support.source import parsed

ROOT = Path(__file__).parents[2]
PACKAGES = ("forq_trio", "pyspark_forq", "tests/oracle")


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def modules() -> dict[str, ast.Module]:
    """Every module of our packages by its name, without "forq_trio." where it begins so ("" for that package)."""
    trees = {}
    for package in map(ROOT.joinpath, PACKAGES):
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            trees[name.removeprefix("forq_trio").lstrip(".")] = parsed(path)
    return trees


@pytest.fixture(scope="session")
def python_files() -> list[Path]:
    """All Python we keep, tests included."""
    return sorted(
        path
        for folder in ("forq_trio", "pyspark_forq", "tests", "bench", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    )


@pytest.fixture(scope="session")
def declared(root) -> dict[str, list[Requirement]]:
    """What pyproject.toml says that each extra requires, and the base, whose name is ""."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [Requirement(text) for text in texts] for extra, texts in lists.items()}
