"""How content is shown: as it was sent, within bounds, and never as markup."""

import html
import json
import re

import pytest

from forq_trio.ui import content
from forq_trio.ui.content import read_json, show, visible

KIB = 1024
LONGEST = 256 * KIB


def text_of(shown: content.Shown) -> str:
    """What a reader sees."""
    return html.unescape(re.sub("<[^>]*>", "", shown.html))


def test_json_keeps_numbers_escapes_order_and_duplicates() -> None:
    sent = (
        r'{"b":90071992547409931,"a":1249.90,"a":1e400,"s":"\u00e4\ud800\/ \"x\"",'
        r'"t":[true,false,null],"e":[],"o":{}}'
    )
    shown = show(sent)
    assert shown.summary == f"JSON, {len(sent)} bytes, numbers as sent"
    assert text_of(shown).splitlines() == [
        "{",
        '  "b": 90071992547409931,',
        '  "a": 1249.90,',
        '  "a": 1e400,',
        r'  "s": "\u00e4\ud800\/ \"x\"",',
        '  "t": [ true, false, null ],',
        '  "e": [],',
        '  "o": {}',
        "}",
    ]
    assert '<span class="n">90071992547409931</span>' in shown.html
    assert '<span class="k">"a"</span>' in shown.html


@pytest.mark.parametrize("depth", [1, 5, content.DEPTH_MAX])
def test_what_is_shown_of_json_is_the_same_json(depth) -> None:
    value: object = [1, {"k": "<&>\"'\u00e9", "long": "x" * 70, "more": [[], {}, [{}], "y", -0.5e-7]}]
    for _ in range(depth - 4):
        value = {"in": value}
    assert json.loads(text_of(show(json.dumps(value)))) == value


NO_JSON = (
    ['{"a" 1}', "[1,]", '{"a":1,}', "[1 2]", "{1:2}", '["a":1]', "[01]", "[1]]", "[1] x", '{"a":1},', "[,]", "[+1]",
     '["\x01"]', "['a']", "[tru]", r'["\x"]', '{"a":1]', "[", "", '{"a"}', "[1.]", "nothing", "42", '["\\ud8"]']
)  # fmt: skip


def test_what_is_no_json_is_text_as_it_was_sent() -> None:
    for sent in NO_JSON:
        shown = show(sent)
        assert (shown.kind, text_of(shown)) == ("Text", visible(sent))


@pytest.mark.parametrize(
    "sent",
    ["[" * LONGEST, '{"a":' * (LONGEST // 5), "[1," * (LONGEST // 3), "[" + "[],", "[" + "1," * (LONGEST // 2) + "1]",
     '["' + "\\n" * (LONGEST // 2 - 2), '{"a":"' + "x" * (LONGEST - 7), "x" * LONGEST, "\0" * LONGEST,
     '["' + "\\" * LONGEST, '["\x01' + "\\" * LONGEST,
     "\u202e" * (LONGEST // 3), "\ud800" * 1000, "<" * LONGEST, '"' * LONGEST, "[-" * (LONGEST // 2), "\\" * LONGEST,
     '["' + "<&" * 100_000 + '"]', json.dumps({str(number): [number] for number in range(20_000)})],
    ids=lambda sent: sent[:5].encode("ascii", "backslashreplace").decode(),
)  # fmt: skip
def test_any_content_is_shown_within_bounds(sent) -> None:
    for view in ("", *content.VIEWS):
        shown = show(sent, view, "1")
        assert shown.shown_bytes <= content.CONTENT_SHOWN_BYTES_MAX
        assert len(shown.html) < 800 * KIB
        assert shown.bytes == len(sent.encode(errors="surrogatepass"))
        assert (shown.shown_bytes < shown.bytes) == ("first" in shown.summary)
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e\ud800-\udfff]", shown.html)


def test_reading_json_takes_a_bounded_number_of_steps() -> None:
    assert read_json("[" * LONGEST).steps == content.DEPTH_MAX + 1
    many = read_json("[" + "1," * LONGEST)
    assert many.steps == content.STEPS_MAX
    assert many.is_json
    members = ",".join(f'"{number}":"{number}"' for number in range(1_000))
    assert read_json(f"{{{members}}}").steps == 1_002
    indented = read_json("[" * content.DEPTH_MAX + '{"a":[{}],"b":' * 2_000, is_cut=True)
    assert not indented.is_json
    assert len(read_json("[" * (content.DEPTH_MAX - 1) + "1," * 3_000).html) < 3 * content.INDENT_BYTES_MAX


def test_what_is_cut_says_so() -> None:
    long = json.dumps(["word " * 4] * 8_000)
    shown = show(long)
    assert shown.kind == "JSON"
    assert shown.summary.startswith("JSON, first ")
    assert text_of(shown).endswith("…")
    assert show("x" * LONGEST).summary == "Text, first 64 KiB of 256 KiB"
    assert show("é" * 40_000, "raw").shown_bytes == content.CONTENT_SHOWN_BYTES_MAX
    assert show("x" * LONGEST, "hex").summary == "Text, first 16 KiB of 256 KiB"


def test_content_is_never_markup() -> None:
    attack = "<script>alert(1)</script>&lt;b&gt; \"' </pre>"
    for sent in (attack, json.dumps({attack: [attack]})):
        for view in content.VIEWS:
            tags = set(re.findall("<[^>]*>", show(sent, view, "script").html))
            assert tags <= {"<mark>", "</mark>", "</span>", *(f'<span class="{kind}">' for kind in "ksnc")}
    assert text_of(show(attack)) == attack


@pytest.mark.parametrize(
    ("sent", "wanted", "marks"),
    [("sofa and sofa", "sofa", ["sofa", "sofa"]), ('{"a":"sofa"}', "sofa", ["sofa"]),
     ("a<b & c", "<b &", ["&lt;b &amp;"]), ("<&>", "lt", []),
     ('{"a":1}', "span", []), ("a.c abc", "a.c", ["a.c"]), ("x", "", [])],
)  # fmt: skip
def test_hits_of_a_search_are_marked(sent, wanted, marks) -> None:
    assert re.findall("<mark>(.*?)</mark>", show(sent, "", wanted).html) == marks


def test_what_cannot_be_seen_is_shown_as_a_symbol() -> None:
    assert visible("a\0b\x1b\x7f\x85\u202e\u200b\ufeff\ud800\t\n") == (
        "a␀b␛␡⟨U+0085⟩⟨U+202E⟩⟨U+200B⟩⟨U+FEFF⟩⟨U+D800⟩\t\n"
    )
    assert visible("Zoë 李雷 🙂") == "Zoë 李雷 🙂"


def test_binary_content_is_first_shown_as_a_hex_dump() -> None:
    picture = "\x89PNG\r\n\x1a\n" + "\0\1\2" * 20
    assert show(picture).view == "hex"
    assert (
        show(picture).html.splitlines()[0]
        == "000000  c2 89 50 4e 47 0d 0a 1a  0a 00 01 02 00 01 02 00  ..PNG..........."
    )
    assert show(picture, "raw").kind == "Binary"
    assert show("a line\nwith \x1b[1mone\x1b[0m\0 escape").kind == "Text"
