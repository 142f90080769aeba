"""A configuration that is as short as can be, and what is wrong with another one."""

from pathlib import Path

import pytest

from forq_trio.config.errors import ConfigError
from forq_trio.config.load import load
from forq_trio.model import limits

SECRET = "s" * limits.AUTH_SECRET_LENGTH_MIN
OTHER_SECRET = "t" * limits.AUTH_SECRET_LENGTH_MIN
MINIMAL = {"FORQ_AUTH_SECRET": SECRET}


def problems(environ: dict[str, str], toml: Path | None = None, **options: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(options, environ, toml)
    return list(caught.value.problems)


def file_with(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "forq.toml"
    path.write_text(text, encoding="utf-8")
    return path
