"""The schemas of the OpenAPI document: those that msgspec makes, with what the types say beyond their form.

A member is described by its comment in the source of its class: on its line, or in the lines above it. So a fact about
a member stands in one place. Without the source those descriptions are missing, and nothing else is.
"""

import linecache
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, inspect
from msgspec.structs import asdict

from forq_trio.model.member_names import json_name
from forq_trio.model.values import EPOCH_MS, LEFT_OUT_MARK

INT32_MAX = 2**31 - 1

KNOWN_WORDS = "x-extensible-enum"
"""The words that a text in an answer may be today. Later servers answer further ones, and strict clients take these,
because the schema has no `enum`."""

_MEMBER = re.compile(r" {4}(\w+): ")
_COMMENT = re.compile(r"  # (?!noqa|type:)(.+)")
_SNAKE = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
_CONSTANT = re.compile(r"(?<!`)\b(None|True|False|null|true|false)\b(?!`)")
_IN_JSON = {"None": "null", "True": "true", "False": "false"}


def schemas_of(
    bodies: Sequence[Any], answers: Sequence[Any]
) -> tuple[dict[Any, dict[str, Any]], dict[str, dict[str, Any]]]:
    """The schema of each type, and the components to which they refer."""
    types = [*bodies, *answers]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    structs, sent = _structs_in(types), _structs_in(bodies)
    words = {name: each["enum"] for name, each in components.items() if "enum" in each}
    members = {json_name(name) for struct in structs.values() for name in struct.__struct_fields__}
    for component in components.values():
        if "description" in component:
            component["description"] = in_json(component["description"], members)
    for name, struct in structs.items():
        component = components[name]
        if name not in sent:
            component.pop("additionalProperties", None)  # False for types that Python reads strictly
            _open_words(component, words)
        _describe(component, _comments_of(struct), members)
        if name not in sent and not struct.__struct_config__.omit_defaults:
            _require_all(component)
    by_type = dict(zip(types, schemas, strict=True))
    _complete([by_type, components])
    return by_type, components


def _structs_in(types: Sequence[Any]) -> dict[str, type[Struct]]:
    """All Structs in these types, at any depth, by name."""
    found: dict[str, type[Struct]] = {}
    pending = list(inspect.multi_type_info(types))
    while pending:
        each = pending.pop()
        if isinstance(each, inspect.StructType):
            if each.cls.__name__ in found:
                continue
            found[each.cls.__name__] = each.cls
            pending += [field.type for field in each.fields]
        else:
            pending += _parts_of(each)
    return found


def _parts_of(info: inspect.Type) -> Iterator[inspect.Type]:
    """The types of which this type is made."""
    for value in asdict(info).values():
        parts = value if isinstance(value, tuple) else (value,)
        yield from (part for part in parts if isinstance(part, inspect.Type))


def _describe(component: dict[str, Any], comments: dict[str, str], members: set[str]) -> None:
    for name, schema in component.get("properties", {}).items():
        if schema.pop(LEFT_OUT_MARK, False):  # left out of the JSON instead of being null or its default
            del schema["default"]
            schema |= schema.pop("anyOf", [{}])[0]
        _join_null(schema)
        for each in schema.get("anyOf", ()):  # what is said of one of two types is meant of the member
            if "$ref" in each and "description" in each:
                schema["description"] = each.pop("description")
        meaning, comment = schema.get("description", ""), _sentence(comments.get(name, ""))
        said = [comment, meaning] if meaning == EPOCH_MS else [meaning, comment]
        if any(said):
            schema["description"] = in_json(" ".join(filter(None, said)), members)


def _join_null(schema: dict[str, Any]) -> None:
    """Say `type: [integer, null]` instead of `anyOf` with two of them, which fewer generators understand."""
    either = schema.get("anyOf", [])
    either.sort(key=lambda each: each == {"type": "null"})  # msgspec 0.21 has it first in some
    for each in either:
        complete(each)
    if len(either) == 2 and either[1] == {"type": "null"} and isinstance(either[0].get("type"), str):
        del schema["anyOf"]
        kind = either[0]["type"]
        schema |= {**either[0], **schema, "type": [kind, "null"]}
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]


def _require_all(component: dict[str, Any]) -> None:
    """What is only answered always has all of its members."""
    component["required"] = list(component.get("properties", {}))
    for schema in component.get("properties", {}).values():
        schema.pop("default", None)


def _open_words(value: Any, words: Mapping[str, Sequence[str]]) -> None:
    """Make a text of each list of words in what is only answered. words: the lists that are components, by name."""
    if isinstance(value, list):
        for each in value:
            _open_words(each, words)
    elif isinstance(value, dict):
        named = str(value.get("$ref", "")).rpartition("/")[2]
        if named in words:
            del value["$ref"]
            value |= known_words(words[named])
        elif "enum" in value:
            found = value.pop("enum")
            value |= known_words([each for each in found if each is not None])
            if None in found:
                value["type"] = ["string", "null"]
        for each in value.values():
            _open_words(each, words)


def known_words(words: Sequence[str]) -> dict[str, Any]:
    """The schema of a text in an answer that is one of these words today."""
    return {"type": "string", KNOWN_WORDS: [*words]}


def _complete(value: Any) -> None:
    """Say of all schemas in a value what generators of clients need."""
    if isinstance(value, list):
        for each in value:
            _complete(each)
    elif isinstance(value, dict):
        complete(value)
        for each in value.values():
            _complete(each)


def complete(schema: dict[str, Any]) -> None:
    """Say of words that they are texts, and of an integer that may not fit into 32 bits that it has 64."""
    if isinstance(schema.get("enum"), list):
        schema.setdefault("type", "string")
    is_integer = schema.get("type") in ("integer", ["integer", "null"])
    if is_integer and schema.get("maximum", INT32_MAX + 1) > INT32_MAX:
        schema["format"] = "int64"


def in_json(text: str, members: set[str]) -> str:
    """A text about Python's members and constants as one about those of JSON, each paragraph on one line."""
    text = _SNAKE.sub(lambda word: named if (named := json_name(word[0])) in members else word[0], text)
    text = _CONSTANT.sub(lambda word: f"`{_IN_JSON.get(word[0], word[0])}`", text)
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _sentence(comment: str) -> str:
    """A comment as a sentence of its own."""
    if not comment:
        return ""
    first = comment[0] if comment.startswith("null") else comment[0].upper()
    return f"{first}{comment[1:].removesuffix('.')}."


def _comments_of(struct: type[Struct]) -> dict[str, str]:
    """The comment of each member, by its name in JSON."""
    found: dict[str, str] = {}
    for each in reversed(struct.__mro__):
        if issubclass(each, Struct):
            found |= _own_comments(each)
    names = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    return {encoded: found[name] for name, encoded in names if name in found}


def _own_comments(struct: type) -> dict[str, str]:
    """The comments on the members that the body of this class declares, in the form that ruff gives to code."""
    found: dict[str, list[str]] = {}
    member, above, is_text = "", [], False
    for line in _body_of(struct):
        if '"""' in line:
            is_text ^= line.count('"""') == 1
        elif is_text:
            continue
        elif line.startswith(("    def ", "    @")):
            break
        elif line.startswith("    # "):
            above.append(line[6:].strip())
        else:
            if declared := _MEMBER.match(line):
                member = declared[1]
                found[member], above = above, []
            if member and (comment := _COMMENT.search(line)):
                found[member].append(comment[1])
    return {name: " ".join(comments) for name, comments in found.items() if comments}


def _body_of(struct: type) -> Iterator[str]:
    """The lines of a class behind its first; none if the source is not there."""
    lines = iter(linecache.getlines(getattr(sys.modules[struct.__module__], "__file__", None) or ""))
    for line in lines:
        if line.startswith((f"class {struct.__name__}(", f"class {struct.__name__}:")):
            break
    for line in lines:
        if line[:1] not in (" ", ")", "\n"):
            return
        yield line.rstrip("\n")
