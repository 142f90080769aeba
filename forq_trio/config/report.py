"""The output of `forq config`: the effective values with their sources, or an example file; no secrets."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forq_trio.config.load import Loaded
from forq_trio.config.settings import SETTINGS, ServerSetting
from forq_trio.config.values import HostPort, Names

MASK = "********"


def shown_value(setting: ServerSetting, value: Any) -> str | int | bool | None:
    """A value to print: secrets masked, paths and addresses as text."""
    if setting.secret and value is not None:
        return MASK
    return str(value) if isinstance(value, Path | HostPort | Names) else value


def rows(loaded: Loaded) -> list[tuple[ServerSetting, str | int | bool | None, str]]:
    """Every setting with its effective value (secrets masked) and the source of it."""
    return [
        (setting, shown_value(setting, getattr(loaded.config, name)), loaded.sources[name])
        for name, setting in SETTINGS.items()
    ]


def as_json(loaded: Loaded) -> str:
    """{"<section>": {"<key>": {"value", "source"}}} as indented JSON."""
    document: dict[str, dict[str, dict[str, Any]]] = {}
    for setting, value, source in rows(loaded):
        document.setdefault(setting.section, {})[setting.name] = {"value": value, "source": source}
    return json.dumps(document, indent=2, ensure_ascii=False)


def example(chosen: Mapping[str, str] | None = None) -> str:
    """A TOML file with every key, commented out and set to its default; a comment above it says what it means.

    chosen: values by name of the settings that the file sets instead.
    """
    chosen = chosen or {}
    lines = [
        "# Settings of forq serve. Remove the # before a key to set it.",
        "# A command line option or an environment variable (FORQ_ and the key in capitals) goes first.",
    ]
    section = ""
    for setting in SETTINGS.values():
        if setting.section != section:
            section = setting.section
            lines += ["", f"[{section}]"]
        lines += [
            "",
            f"# {setting.doc}",
            f"# Allowed: {setting.form.allowed}. Default: {setting.default_text}.",
            f"{setting.name} = {_toml(chosen[setting.name])}"
            if setting.name in chosen
            else f"# {setting.name} = {_toml(setting.example)}",
        ]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool | int):
        return str(value).lower()
    return json.dumps(str(value), ensure_ascii=False)
