"""A query is declared once: what clients write the server reads, and the document lists it."""

from typing import Annotated, Literal
from urllib.parse import urlencode

import pytest
from msgspec import Meta, field
from msgspec.structs import replace

from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.model.queries import Parameter, Query, parameters_of
from forq_trio.model.values import bounded
from support.endpoints import all_endpoints


class Wanted(Query, frozen=True, kw_only=True):
    """One parameter of each kind."""

    limit: Annotated[int, bounded(1, 100, "The most.")] = 10
    before: Annotated[int, bounded(0, 99, "Below this.")] | None = None
    order: Annotated[Literal["up", "down", "any"], Meta(description="The order.")] = "up"
    outcome: Annotated[Literal["done", "dead"], Meta(description="The outcome.")] | None = None
    once_more: Annotated[bool, Meta(description="Once more.")] = False
    kind: Annotated[str, Meta(description="The kind.")] = ""
    after: Annotated[str, Meta(description="Behind this.")] | None = None
    attributes: Annotated[dict[str, str], Meta(description="All of them.")] = field(default_factory=dict)


read = QueryReader(Wanted)


def test_what_is_absent_has_its_default() -> None:
    assert read("") == read("unknown=1") == Wanted()
    assert Wanted().given() == {}


def test_a_query_is_read() -> None:
    for query, wanted in (
        ("limit=100", Wanted(limit=100)),
        ("limit=x&limit=07", Wanted(limit=7)),
        ("before=0", Wanted(before=0)),
        ("order=any&outcome=dead", Wanted(order="any", outcome="dead")),
        ("onceMore=true", Wanted(once_more=True)),
        ("kind=a+b%26c", Wanted(kind="a b&c")),
        ("kind=%FF", Wanted(kind="\udcff")),
        ("after=", Wanted(after="")),
        ("attributes=a:b&attributes=c:d:e&attributes=:", Wanted(attributes={"a": "b", "c": "d:e", "": ""})),
    ):
        assert read(query) == wanted


NOT_VALID = [
    ("limit=0", "bad_request.limit.out_of_range", "limit", "limit must be between 1 and 100, not 0"),
    ("limit=101", "bad_request.limit.out_of_range", "limit", "limit must be between 1 and 100, not 101"),
    *(
        (
            f"limit={text}",
            "bad_request.limit.out_of_range",
            "limit",
            f"limit must be between 1 and 100, not '{shown}'",
        )
        for text, shown in (
            ("", ""),
            ("-1", "-1"),
            ("%2B1", "+1"),
            ("1+", "1 "),
            ("1.0", "1.0"),
            ("1_0", "1_0"),
            ("%D9%A3", "\u0663"),
            ("0001", "0001"),
            ("null", "null"),
            ("1&limit=x", "x"),
        )
    ),
    ("before=100", "bad_request.out_of_range", "before", "before must be between 0 and 99, not '100'"),
    ("order=UP", "bad_request.order.invalid", "order", "order must be one of up, down, any, not 'UP'"),
    ("order=", "bad_request.order.invalid", "order", "order must be one of up, down, any, not ''"),
    ("outcome=x", "bad_request.outcome.invalid", "outcome", "outcome must be one of done, dead, not 'x'"),
    *(
        (
            f"onceMore={text}",
            "bad_request.onceMore.invalid",
            "onceMore",
            f"onceMore must be one of false, true, not '{text}'",
        )
        for text in ("1", "True", "")
    ),
    ("limit=x&before=y", "bad_request.limit.out_of_range", "limit", "limit must be between 1 and 100, not 'x'"),
]  # fmt: skip


def test_what_is_not_valid_is_refused_by_name() -> None:
    for query, code, named, message in NOT_VALID:
        with pytest.raises(Refused) as refused:
            read(query)
        view = refused.value.view
        assert (view.code, view.field, view.message) == (code, named, message)


def test_what_is_no_pair_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        read("attributes=a:b&attributes=a")
    assert refused.value.view.field == "attributes"


def test_the_document_says_the_same() -> None:
    assert [(each.name, each.member, each.meaning, each.schema) for each in parameters_of(Wanted)] == [
        ("limit", "limit", "The most.", {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}),
        ("before", "before", "Below this.", {"type": "integer", "minimum": 0, "maximum": 99}),
        ("order", "order", "The order.", {"type": "string", "enum": ["up", "down", "any"], "default": "up"}),
        ("outcome", "outcome", "The outcome.", {"type": "string", "enum": ["done", "dead"]}),
        ("onceMore", "once_more", "Once more.", {"type": "boolean", "default": False}),
        ("kind", "kind", "The kind.", {"type": "string", "default": ""}),
        ("after", "after", "Behind this.", {"type": "string"}),
        (
            "attributes",
            "attributes",
            "All of them.",
            {"type": "array", "items": {"type": "string", "pattern": "^.+:"}},
        ),
    ]


def test_a_type_that_no_query_can_have_is_refused_at_once() -> None:
    class Fraction(Query, frozen=True, kw_only=True):
        """A number that is not whole."""

        share: Annotated[float, Meta(description="A share.")] = 0.5

    with pytest.raises(TypeError, match="share"):
        QueryReader(Fraction)


QUERIES = {each.query for each in all_endpoints() if each.query is not None}


def values_of(parameter: Parameter) -> list[object]:
    """Values that a parameter may have."""
    schema = parameter.schema
    if "enum" in schema:
        return list(schema["enum"])
    kinds: dict[str, list[object]] = {
        "integer": [schema.get("minimum"), schema.get("maximum")],
        "boolean": [False, True],
        "string": ["", "a b&c=d%", "ä"],
        "array": [{}, {"a": "b:c", "ä": ""}],
    }
    return kinds[schema["type"]]


def test_the_server_reads_what_a_client_writes() -> None:
    for query in QUERIES:
        absent, reader = query(), QueryReader(query)
        assert parameters_of(query)
        for parameter in parameters_of(query):
            for value in values_of(parameter):
                wanted = replace(absent, **{parameter.member: value})
                given = wanted.given()
                assert reader(urlencode(given, doseq=True)) == wanted
                assert given.keys() == (set() if wanted == absent else {parameter.name})
