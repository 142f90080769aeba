"""The page of /stats: one self-contained HTML document, light or dark by the browser's setting, no script."""

from datetime import UTC, datetime
from html import escape

from msgspec import Struct

from forq_trio.model import durations, limits

_STYLE = """
:root { color-scheme: light dark; --ground: #f6f7f9; --card: #fff; --text: #1b1f24; --soft: #656d76;
  --line: #d8dde3; --bar: #2f81f7; --good: #1a7f37; --turned: #9a6700; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --ground: #0d1117; --card: #161b22; --text: #e6edf3; --soft: #8d96a0;
  --line: #2d333b; --bar: #388bfd; --good: #3fb950; --turned: #d29922; --bad: #f85149; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem; }
h1 { margin: 0; font-size: 1.5rem; letter-spacing: -.01em; }
.since, th { color: var(--soft); }
.since { margin: .25rem 0 1.75rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .9rem; margin: 0 0 1.75rem; }
dl div, .table { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
dl div { padding: .9rem 1.1rem; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: .1rem 0 0; font-size: 1.55rem; font-weight: 600; letter-spacing: -.02em; }
.table { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .6rem 1.1rem; text-align: left; white-space: nowrap; }
th { font-size: .85rem; font-weight: 500; }
tbody tr { border-top: 1px solid var(--line); }
tbody tr.quiet { color: var(--soft); }
.number { text-align: right; }
.share { width: 30%; min-width: 7rem; }
.bar { height: .5rem; border-radius: .25rem; background: var(--line); overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--bar); border-radius: .25rem; }
code { font: .92em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.method { color: var(--soft); display: inline-block; width: 3.2em; }
.status { display: inline-block; margin-right: .9rem; white-space: nowrap; }
.status b { font-weight: 600; }
@media (max-width: 40rem) { .share { display: none; } th, td { padding: .6rem .8rem; white-space: normal; } }
.good b { color: var(--good); } .turned b { color: var(--turned); } .bad b { color: var(--bad); }
"""


class EndpointRow(Struct, frozen=True):
    """One endpoint, as "POST /send", and its answers by status."""

    endpoint: str
    answers: dict[int, int]

    @property
    def total(self) -> int:
        return sum(self.answers.values())


def render(rows: list[EndpointRow], uptime_seconds: float, started_at_ms: int) -> str:
    """The whole document."""
    total = sum(row.total for row in rows)
    errors = sum(count for row in rows for status, count in row.answers.items() if status >= 400)
    most = max((row.total for row in rows), default=0)
    started = datetime.fromtimestamp(started_at_ms / limits.SECOND_MS, UTC)
    cards = {
        "Requests": f"{total:,}",
        "Requests a second": f"{total / uptime_seconds if uptime_seconds >= 1 else total:,.2f}",
        "Errors answered": f"{errors:,}",
        "Uptime": durations.exactly(int(uptime_seconds) * limits.SECOND_MS),
    }
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Request counters</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        "<h1>Request counters</h1>\n"
        f'<p class="since">Sasquatch endpoints, since {started:%Y-%m-%d %H:%M:%S} UTC</p>\n'
        f"<dl>\n{''.join(_card(*card) for card in cards.items())}</dl>\n"
        '<div class="table"><table>\n<thead><tr><th>Endpoint</th><th class="number">Requests</th>'
        '<th class="share"></th><th>By status</th></tr></thead>\n'
        f"<tbody>\n{''.join(_row(row, most) for row in rows)}</tbody>\n</table></div>\n"
        "</main>\n</body>\n</html>\n"
    )


def _card(label: str, value: str) -> str:
    return f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>\n"


def _row(row: EndpointRow, most: int) -> str:
    method, path = row.endpoint.split()
    width = 100 * row.total / most if most else 0
    quiet = "" if row.total else ' class="quiet"'
    statuses = "".join(
        f'<span class="status {_mood(status)}"><b>{status}</b> {count:,}</span>'
        for status, count in row.answers.items()
    )
    return (
        f"<tr{quiet}>"
        f'<td><code><span class="method">{escape(method)}</span> {escape(path)}</code></td>'
        f'<td class="number">{row.total:,}</td>'
        f'<td class="share"><div class="bar"><i style="width:{width:.1f}%"></i></div></td>'
        f"<td>{statuses}</td></tr>\n"
    )


def _mood(status: int) -> str:
    if status >= 500:
        return "bad"
    return "turned" if status >= 400 else "good"
