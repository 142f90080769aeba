"""The house's rules for the admin UI: strict headers on every answer, nothing inline, licences for what is vendored."""

import re
from pathlib import Path

import httpx
import pytest

from support.processes import WAIT_SECONDS_MAX
from support.ui_http import Markup, is_stream, logged_in

UI = Path(__file__).parents[2] / "forq_trio" / "ui"
TESTS = Path(__file__).parent

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "font-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
FILE_POLICY = {"default-src": "'none'", "sandbox": ""}
# What no template may hold. Values that depend on data go into attributes of SVG, <progress>, or classes.
REFUSED = {
    "an inline style": re.compile(r"\sstyle\s*=|<style\b"),
    "an inline script": re.compile(r"<script\b(?![^>]*\bsrc=)"),
    "an inline handler": re.compile(r"\s(?:on[a-z]+|hx-on[\w:.-]*)\s*=|\b(?:javascript|js):"),
    "text that is not escaped": re.compile(r"\|\s*safe\b|\bautoescape\s+false\b"),
    "another host": re.compile(r"""(?:src|href|action|hx-\w+)\s*=\s*["'](?:https?:)?//"""),
}
VENDORED = ("*.woff2", "*.min.js", "*.min.css")


def faults_of(answer: httpx.Response) -> list[str]:
    """What is wrong with the headers and the markup of an answer."""
    headers = answer.headers
    policy = dict(
        part.strip().partition(" ")[::2] for part in headers.get("Content-Security-Policy", "none").split(";")
    )
    is_file = headers.get("Content-Disposition", "").startswith("attachment")
    faults = [] if policy == (FILE_POLICY if is_file else POLICY) else [f"Content-Security-Policy: {policy}"]
    if headers.get("X-Content-Type-Options") != "nosniff":
        faults.append("no nosniff")
    is_static = answer.request.url.path.startswith("/static/") and answer.status_code == 200
    if ("no-store" in headers.get("Cache-Control", "")) == is_static:
        faults.append(f"Cache-Control: {headers.get('Cache-Control')}")
    for cookie in headers.get_list("Set-Cookie"):
        parts = {part.strip().lower() for part in cookie.split(";")}
        if not {"httponly", "path=/"} <= parts or not parts & {"samesite=lax", "samesite=strict"}:
            faults.append(f"Set-Cookie: {cookie.partition('=')[0]}: {sorted(parts)[1:]}")
    if headers.get("Server"):
        faults.append(f"Server: {headers['Server']}")
    if headers.get("Content-Type", "").startswith("text/html"):
        faults += Markup(answer.text).refused
    return faults


def test_every_answer_that_a_link_leads_to_is_strict(answers) -> None:
    assert {path: faults for path, answer in answers.items() if (faults := faults_of(answer))} == {}
    assert len(answers) > 10
    assert any(is_stream(answer) for answer in answers.values())


def test_every_link_leads_somewhere(answers) -> None:
    assert {path: answer.status_code for path, answer in answers.items() if answer.status_code >= 400} == {}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/login", 200),
        ("GET", "/", 303),
        ("GET", "/queue/emails?state=ready", 303),
        ("GET", "/no/such/page", 303),
        ("GET", "/static/0/none.css", 404),
        ("GET", "/static/0/../app.py", 404),
        ("GET", "/static/0/%2e%2e/app.py", 404),
        ("POST", "/login", 403),
        ("POST", "/logout", 303),
        ("PUT", "/login", 403),
    ],
)
def test_strangers_are_answered_as_strictly(world, method, path, status) -> None:
    with httpx.Client(base_url=world.ui_url, timeout=WAIT_SECONDS_MAX, verify=False) as client:
        answer = client.request(method, path)
    assert (answer.status_code, faults_of(answer)) == (status, [])


def test_login_and_logout_are_as_strict(world) -> None:
    with httpx.Client(base_url=world.ui_url, timeout=WAIT_SECONDS_MAX, verify=False) as client:
        fields = Markup(client.get("/login").text).hidden
        wrong = client.post("/login", data=fields | {"key": "wrong"}, headers={"Origin": world.ui_url})
        assert (wrong.status_code, faults_of(wrong)) == (403, [])
    with logged_in(world.ui_url) as client:
        missing = client.get("/no/such/page")
        assert (missing.status_code, faults_of(missing)) == (404, [])
        token = Markup(client.get("/").text).hidden["csrf"]
        left = client.post("/logout", data={"csrf": token}, headers={"Origin": world.ui_url})
        assert (left.status_code, faults_of(left)) == (303, [])
        assert client.get("/").headers["Location"].startswith("/login")


def test_static_files_may_be_kept_for_as_long_as_they_are_the_same(world) -> None:
    with logged_in(world.ui_url) as client:
        links = [link for link in Markup(client.get("/").text).links if link.startswith("/static/")]
        assert {".css", ".js"} <= {Path(link.partition("#")[0]).suffix for link in links}
        for link in links:
            fresh = client.get(link)
            assert fresh.headers["Cache-Control"] == "public, max-age=31536000, immutable", link
            _, _, version, name = link.partition("#")[0].split("/", 3)
            assert re.fullmatch(r"[0-9a-f]{8,}", version), link
            # Another version of it, which an older page asks for, must not be kept under the older name.
            assert (
                client.get(f"/static/{'0' * len(version)}/{name}").headers["Cache-Control"] == "no-store"
            ), link


@pytest.mark.parametrize("what", REFUSED)
def test_no_template_has(what) -> None:
    templates = sorted((UI / "templates").rglob("*.html"))
    assert templates
    assert [found for path in templates for found in lines_with(path, REFUSED[what])] == []


def test_no_script_of_ours_runs_text() -> None:
    """The policy would refuse it in a page; this says so where it is written."""
    scripts = [path for path in (UI / "static").rglob("*.js") if ".min." not in path.name]
    assert scripts
    runs = re.compile(r"\beval\(|\bnew Function\b|\bdocument\.write|\bset(?:Timeout|Interval)\(\s*[\"'`]")
    assert [found for path in scripts for found in lines_with(path, runs)] == []


def lines_with(path: Path, pattern: re.Pattern[str]) -> list[str]:
    """Lines of a file that match; parameters of macros are no markup, so statements of Jinja count by their filters."""
    text = re.sub(r"{%-? *macro.*?%}", "", path.read_text(encoding="utf-8"))
    return [
        f"{path.relative_to(UI)}:{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_every_vendored_asset_has_its_licence_beside_it() -> None:
    vendored = [path for place in (UI, TESTS) for pattern in VENDORED for path in place.rglob(pattern)]
    assert {"inter.woff2", "axe.min.js"} <= {path.name for path in vendored}
    assert [str(path.relative_to(UI.parents[1])) for path in vendored if not licences_of(path)] == []
    compiled = {path.name.partition("-")[0] for path in (UI / "static").glob("*-LICENSE.txt")}
    assert {"tailwindcss", "daisyui"} <= compiled  # into app.css


def licences_of(asset: Path) -> list[Path]:
    """Licences in the folder of an asset that name it, or that are for all of the folder."""
    found = [path for path in asset.parent.iterdir() if "LICENSE" in path.name and path.stat().st_size > 500]
    stem = asset.name.partition(".")[0].lower()
    return [path for path in found if stem in path.name.lower() or path.name.startswith("LICENSE")]
