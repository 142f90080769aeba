"""The settings of the server: a heading for each, so that it can be linked."""

from collections.abc import Iterator

from docs._generate.markdown import code, page, with_code, with_links
from forq_trio.config.settings import SETTINGS, ServerSetting

SOURCE = "forq_trio/config/settings.py"


def pages() -> Iterator[tuple[str, str]]:
    yield "settings.md", page("Settings", SOURCE, *_blocks())


def _blocks() -> Iterator[str]:
    yield (
        "Every setting of `forq serve`, by its section of the TOML file. "
        "[Configuration](../configuration.md) says which source goes first, and how mistakes are reported."
    )
    section = ""
    for setting in SETTINGS.values():
        if setting.section != section:
            section = setting.section
            yield f"## [{section}]"
        yield f"### {setting.variable}"
        yield with_links(with_code(setting.doc))
        yield "\n".join(_facts(setting))
        if setting.details:
            yield with_links(with_code(setting.details))


def _facts(setting: ServerSetting) -> Iterator[str]:
    option = f"option {code(setting.option)}" if setting.option else "no option, because it is a secret"
    yield f"- key {code(setting.name)} of {code(f'[{setting.section}]')}, {option}"
    yield f"- allowed: {with_code(setting.form.allowed)}"
    required = setting.field.is_required()
    yield "- required" if required else f"- default: {with_code(setting.default_words)}"
