"""Charts as SVG, drawn by the server: paths in a fixed box that the page stretches; all text is HTML beside them."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

Values = Sequence[float | None]

WIDTH, HEIGHT = 600, 112
SPARK_WIDTH, SPARK_HEIGHT = 96, 20
BARS_MAX = 12
"""Steps that are drawn as bars in a chart of few: a line needs more to be one."""
_BAR_GAP = 0.4
_RING = 31.4  # the circumference of a ring of radius 5
_STEPS = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)


def nice_top(highest: float, least: float = 1.0) -> float:
    """The top of an axis: the next round number above `highest`, at least `least`."""
    wanted = max(highest, least)
    power = 1.0
    while power * 10 < wanted:
        power *= 10
    while power > wanted:
        power /= 10
    return next(step * power for step in _STEPS if step * power >= wanted * 0.9999)


def path(values: Values, width: float, height: float, top: float, pad: float = 0.0) -> str:
    """The `d` of a line from left to right; where nothing is known the line is interrupted, a lone value is a dot."""
    return "".join(
        f"M{points}{'h0' if first == last else ''}"
        for points, first, last in _lines(values, width, height, top, pad)
    )


def area(values: Values, width: float, height: float, top: float, pad: float = 0.0) -> str:
    """The `d` of the area below a line, one piece for each stretch that is known."""
    return "".join(
        f"M{points}L{last:.4g} {height:g}L{first:.4g} {height:g}Z"
        for points, first, last in _lines(values, width, height, top, pad)
    )


def bars(values: Values, width: float, height: float, top: float, place: int = 0, places: int = 1) -> str:
    """The `d` of a bar for each known step. place, places: which of the bars that are side by side in a step."""
    step = width / max(1, len(values))
    each = step * (1 - _BAR_GAP) / places
    scale = height / (top or 1)
    return "".join(
        f"M{(at + _BAR_GAP / 2) * step + place * each:.4g} {height:g}v{-value * scale:.4g}h{each * 0.9:.4g}V{height:g}Z"
        for at, value in enumerate(values)
        if value
    )


def _lines(
    values: Values, width: float, height: float, top: float, pad: float
) -> Iterator[tuple[str, float, float]]:
    """The points of each stretch that is known, and where it begins and ends."""
    step = width / max(1, len(values) - 1)
    scale = (height - 2 * pad) / (top or 1)
    for start, end in _stretches(values):
        points = "L".join(
            f"{place * step:.4g} {height - pad - (values[place] or 0) * scale:.4g}"
            for place in range(start, end)
        )
        yield points, start * step, (end - 1) * step


def _stretches(values: Values) -> list[tuple[int, int]]:
    """The stretches of known values, as (first, one past the last)."""
    stretches = []
    start: int | None = None
    for place, value in enumerate([*values, None]):
        if value is not None and start is None:
            start = place
        elif value is None and start is not None:
            stretches.append((start, place))
            start = None
    return stretches


def chart(
    lines: Sequence[tuple[str, Values]],
    top: float,
    *,
    filled: bool = False,
    limit: float | None = None,
    raised: float = 0,
    barred: bool = False,
) -> Markup:
    """Grid, lines (each with its class, the first one filled if wanted) and a limit as a dotted line.

    raised: so far above its value the limit is drawn, where a line would lie on it. barred: draw bars, not lines.
    """
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">']
    parts += [f'<path class="gl" d="M0 {HEIGHT * share:g}H{WIDTH}"/>' for share in (0, 0.5, 1)]
    if limit is not None and limit <= top:
        parts.append(
            f'<path class="ln ln-w" d="M0 {max(HEIGHT - limit / top * HEIGHT - raised, 0):.1f}H{WIDTH}"/>'
        )
    for place, (name, values) in enumerate(lines):
        if barred:
            shape = bars(values, WIDTH, HEIGHT, top, place, len(lines))
            parts.append(f'<path class="ba {escape(name)}" d="{shape}"/>')
            continue
        if filled and place == 0:
            parts.append(f'<path class="ar-a" d="{area(values, WIDTH, HEIGHT, top)}"/>')
        parts.append(f'<path class="ln {escape(name)}" d="{path(values, WIDTH, HEIGHT, top)}"/>')
    return Markup("".join(parts) + '<path class="cross" d=""/></svg>')


def sparkline(values: Values, label: str) -> Markup:
    """A line without an axis, on its own scale from 0; flat at the bottom where there is nothing."""
    top = max((value for value in values if value is not None), default=0)
    head = (
        f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(label)}">'
    )
    if top <= 0:
        return Markup(f'{head}<path class="zero" d="M0 {SPARK_HEIGHT - 1}H{SPARK_WIDTH}"/></svg>')
    fill = area(values, SPARK_WIDTH, SPARK_HEIGHT, top, 1)
    line = path(values, SPARK_WIDTH, SPARK_HEIGHT, top, 1)
    return Markup(f'{head}<path class="ar" d="{fill}"/><path class="ln" d="{line}"/></svg>')


def ring(share: float) -> Markup:
    """How much of a lease is left, as a ring that empties."""
    low = ' class="ring low"' if share < 0.2 else ' class="ring"'
    return Markup(
        f'<svg{low} viewBox="0 0 14 14" aria-hidden="true"><circle class="t" cx="7" cy="7" r="5"/>'
        f'<circle class="a" cx="7" cy="7" r="5" stroke-dasharray="{_RING * max(0.0, min(1.0, share)):.1f} {_RING}"'
        ' transform="rotate(-90 7 7)"/></svg>'
    )


def histogram(counts: Sequence[float], marked: int | None = None) -> Markup:
    """Bars of equal width, the one at `marked` in the accent colour."""
    highest = max(counts, default=0) or 1
    width = 320 / max(1, len(counts))
    bars = []
    for place, count in enumerate(counts):
        height = max(count / highest * 84, 1 if count else 0)
        name = ' class="p"' if place == marked else ""
        bars.append(
            f'<rect{name} x="{place * width + 1:.1f}" y="{88 - height:.1f}" width="{width - 2:.1f}"'
            f' height="{height:.1f}"/>'
        )
    return Markup(
        '<svg class="hist" viewBox="0 0 320 88" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="gl" d="M0 88H320"/>{"".join(bars)}</svg>'
    )
