"""The types of the OpenAPI document in words."""

import json
from typing import Any

from docs._generate.markdown import cell, code, table
from forq_trio.http.forq_api.openapi_schemas import KNOWN_WORDS

KINDS = {"string": "text", "object": "object", "array": "list", "boolean": "true or false", "null": "null"}
UNITS = (("Ms", "milliseconds"), ("Seconds", "seconds"), ("ytes", "bytes"))
"""By the end of a name, the unit of the number."""
EPOCH = "Milliseconds since the Unix epoch."


def members_of(schema: dict[str, Any], *, sent: bool) -> str:
    """The table of the members of a type. sent: it is one of bodies; others are only answered."""
    needed = schema.get("required", [])
    rows = []
    for member, each in schema["properties"].items():
        meaning = cell(each.get("description", "").replace(EPOCH, ""))
        default = default_of({"schema": each, "required": member in needed})
        if sent:
            rows.append((code(member), kind_of(each, member), meaning, default))
        else:
            absent = "" if default == "required" else f" May be absent{default and f': {default}'}."
            rows.append((code(member), kind_of(each, member), meaning + absent))
    return table(("member", "type", "meaning", "without it")[: 4 if sent else 3], rows)


def kind_of(schema: dict[str, Any], name: str = "") -> str:
    """The type of a value in a few words, with its bounds."""
    if "$ref" in schema:
        kind = schema["$ref"].rpartition("/")[2]
        return f"[{kind}](http-types.md#{kind.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(kind_of(each, name) for each in schema[several])
    if "enum" in schema or KNOWN_WORDS in schema:
        words = schema.get("enum") or [*schema[KNOWN_WORDS], *([None] if "null" in schema["type"] else [])]
        *others, last = ["null" if each is None else f"`{each}`" for each in words]
        return f"{', '.join(others)} or {last}" if others else last
    kinds = schema.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return " or ".join(_one_kind(kind, schema, name) for kind in kinds)


def _one_kind(kind: str, schema: dict[str, Any], name: str) -> str:
    if kind in ("integer", "number"):
        if EPOCH in schema.get("description", ""):
            return "time"
        unit = next((unit for end, unit in UNITS if name.endswith(end)), kind)
        return unit + _numbers(schema, "minimum", "maximum")
    if kind == "string":
        lengths = _numbers(schema, "minLength", "maxLength")
        return (
            "UUID" if schema.get("format") == "uuid" else f"text{lengths} characters" if lengths else "text"
        )
    if kind == "array":
        items = schema.get("items")
        several = _numbers(schema, "minItems", "maxItems")
        return (
            "list"
            + (f" of {kind_of(items, name)}" if items else "")
            + (f"{several} of them" if several else "")
        )
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {kind_of(schema['additionalProperties'])}" + _numbers(schema, "", "maxProperties")
    return KINDS[kind]


def _numbers(schema: dict[str, Any], low: str, high: str) -> str:
    least, most = schema.get(low), schema.get(high)
    if most is not None and most >= 2**53 - 1:
        most = None
    if least is not None and most is not None:
        return f", {least:,} to {most:,}"
    if most is not None:
        return f", at most {most:,}"
    return "" if not least else f", at least {least:,}"


def default_of(each: dict[str, Any]) -> str:
    schema = each["schema"]
    if each.get("required"):
        return "required" if "default" not in schema else ""
    default = schema.get("default")
    return "" if default is None else f"`{json.dumps(default, ensure_ascii=False)}`"
