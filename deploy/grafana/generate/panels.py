"""Panels of Grafana as data: each kind is a function, with a title, a description and queries."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import looks

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
Json = dict[str, Any]


class Query(NamedTuple):
    """An expression of PromQL, what it is called, and its colour ("" for one of Grafana's)."""

    expr: str
    name: str
    colour: str = ""


def _letter(number: int) -> str:
    """What a panel calls its queries: A, B, C …"""
    return chr(ord("A") + number)


def _targets(queries: Sequence[Query], kind: str, *, instant: bool) -> list[Json]:
    return [
        {
            "refId": _letter(number),
            "datasource": SOURCE,
            "editorMode": "code",
            "expr": query.expr,
            "format": kind,
            "instant": instant,
            "legendFormat": query.name,
            "range": not instant,
        }
        for number, query in enumerate(queries)
    ]


def _colours(queries: Sequence[Query], colour_from: float | None = None) -> list[Json]:
    return [
        {
            "matcher": {"id": "byFrameRefID", "options": _letter(number)},
            "properties": [_colour(query.colour, colour_from)],
        }
        for number, query in enumerate(queries)
        if query.colour
    ]


def _colour(colour: str, colour_from: float | None) -> Json:
    if colour_from is None:
        return {"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}
    return {"id": "thresholds", "value": looks.steps((colour, colour_from), first=looks.FAINT)}


def _panel(kind: str, title: str, description: str, width: int, height: int, **more: Any) -> Json:
    return {
        "type": kind,
        "title": title,
        "description": description,
        "gridPos": {"w": width, "h": height},
        "datasource": SOURCE,
        **more,
    }


def stat(
    title: str,
    description: str,
    queries: Sequence[Query],
    unit: str,
    *,
    width: int,
    height: int = 4,
    thresholds: Json | None = None,
    mappings: Sequence[Json] = (),
    none: str = "",
    colour_from: float | None = None,
) -> Json:
    """Figures of now. none: what stands there without any. colour_from: below that they are faint; None for never."""
    defaults: Json = {
        "unit": unit,
        "color": {"mode": "thresholds"},
        "thresholds": thresholds or looks.steps(),
        "mappings": list(mappings),
    }
    if none:
        defaults["noValue"] = none
    return _panel(
        "stat",
        title,
        description,
        width,
        height,
        targets=_targets(queries, "time_series", instant=True),
        fieldConfig={"defaults": defaults, "overrides": _colours(queries, colour_from)},
        options={
            "colorMode": "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "vertical" if len(queries) > 1 else "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "textMode": "value_and_name" if len(queries) > 1 else "value",
            "wideLayout": False,
        },
    )


def chart(
    title: str,
    description: str,
    queries: Sequence[Query],
    unit: str,
    *,
    width: int = 8,
    stacked: bool = False,
    thresholds: Json | None = None,
    none: str = "",
) -> Json:
    """Lines over time, or areas on top of each other. thresholds: dashed lines."""
    custom: Json = {
        "drawStyle": "line",
        "fillOpacity": 60 if stacked else 8,
        "lineInterpolation": "linear",
        "lineWidth": 0 if stacked else 1,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if thresholds else "off"},
    }
    defaults: Json = {
        "unit": unit,
        "min": 0,
        "color": {"mode": "palette-classic"},
        "custom": custom,
        "thresholds": thresholds or looks.steps(),
        "mappings": [],
    }
    if none:
        defaults["noValue"] = none
    return _panel(
        "timeseries",
        title,
        description,
        width,
        8,
        targets=_targets(queries, "time_series", instant=False),
        fieldConfig={"defaults": defaults, "overrides": _colours(queries)},
        options={
            "legend": {
                "calcs": ["lastNotNull"],
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    )


def timeline(title: str, description: str, query: Query, words: dict[str, tuple[str, str]]) -> Json:
    """States over time as words."""
    return _panel(
        "state-timeline",
        title,
        description,
        24,
        4,
        targets=_targets([query], "time_series", instant=False),
        fieldConfig={
            "defaults": {
                "unit": "none",
                "color": {"mode": "thresholds"},
                "custom": {"fillOpacity": 80, "lineWidth": 0},
                "thresholds": looks.steps(),
                "mappings": looks.mapping(words),
            },
            "overrides": [],
        },
        options={
            "alignValue": "left",
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False},
            "mergeValues": True,
            "rowHeight": 0.8,
            "showValue": "auto",
            "tooltip": {"mode": "single", "sort": "none"},
        },
    )


def heatmap(title: str, description: str, expr: str, *, width: int = 8, none: str = "") -> Json:
    """How many values fell into each bucket of a histogram of seconds."""
    defaults: Json = {"unit": "s", "custom": {"scaleDistribution": {"type": "linear"}}}
    if none:
        defaults["noValue"] = none
    return _panel(
        "heatmap",
        title,
        description,
        width,
        8,
        targets=_targets([Query(expr, "{{le}}")], "heatmap", instant=False),
        fieldConfig={"defaults": defaults, "overrides": []},
        options={
            "calculate": False,
            "cellGap": 1,
            "color": {
                "mode": "opacity",
                "fill": looks.ACCENT,
                "exponent": 0.5,
                "scale": "exponential",
                "steps": 64,
            },
            "exemplars": {"color": looks.BAD},
            "filterValues": {"le": 1e-9},
            "legend": {"show": False},
            "rowsFrame": {"layout": "auto"},
            "tooltip": {"mode": "single", "yHistogram": False},
            "yAxis": {"axisPlacement": "left", "unit": "s"},
        },
    )


class Column(NamedTuple):
    """A column of a table: its query, or the label that is shown; see `table`."""

    title: str
    expr: str = ""
    unit: str = "short"
    label: str = ""  # of the first query that has it
    thresholds: Json | None = None
    words: dict[str, tuple[str, str]] | None = None
    link: str = ""


def table(title: str, description: str, columns: Sequence[Column], *, height: int, sort: str) -> Json:
    """Rows by what the labels of the queries have in common. sort: the title of a column, highest first."""
    queries = [column for column in columns if column.expr]
    names = {
        f"Value #{_letter(queries.index(each))}" if not each.label else each.label: each.title
        for each in columns
    }
    order = {name: place for place, name in enumerate(names)}
    hidden = {"Time": True} | {
        f"Value #{_letter(number)}": True for number, each in enumerate(queries) if each.label
    }
    return _panel(
        "table",
        title,
        description,
        24,
        height,
        targets=_targets([Query(each.expr, "") for each in queries], "table", instant=True),
        transformations=[
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {"excludeByName": hidden, "indexByName": order, "renameByName": names},
            },
        ],
        fieldConfig={
            "defaults": {
                "unit": "short",
                "color": {"mode": "thresholds"},
                "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": False},
                "thresholds": looks.steps(),
                "mappings": [],
            },
            "overrides": [_of_column(each) for each in columns],
        },
        options={
            "cellHeight": "sm",
            "footer": {"show": False, "reducer": ["sum"], "countRows": False, "fields": ""},
            "showHeader": True,
            "sortBy": [{"displayName": sort, "desc": True}],
        },
    )


def _of_column(column: Column) -> Json:
    properties: list[Json] = [{"id": "unit", "value": column.unit}]
    if column.thresholds or column.words:
        properties.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
    if column.thresholds:
        properties.append({"id": "thresholds", "value": column.thresholds})
    if column.words:
        properties.append({"id": "mappings", "value": looks.mapping(column.words)})
    if column.link:
        properties.append({"id": "links", "value": [{"title": "Open", "url": column.link}]})
    return {"matcher": {"id": "byName", "options": column.title}, "properties": properties}


def variable(name: str, label: str, query: str) -> Json:
    """A variable with the values of a label."""
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "definition": query,
        "query": {"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "refresh": 2,
        "sort": 1,
        "regex": "",
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "current": {},
        "options": [],
    }


JOB = variable("job", "Job", "label_values(forq_inbox_calls, job)")
"""The queue service: the servers on one database."""


def dashboard(
    uid: str, title: str, description: str, sections: Sequence[tuple[str, Sequence[Json]]], *more: Json
) -> Json:
    """A dashboard of sections with their panels, which fill lines of 24 columns. more: further variables."""
    placed: list[Json] = []
    top = 0
    for heading, found in sections:
        if heading:
            bar = {"type": "row", "title": heading, "collapsed": False, "panels": []}
            placed.append(bar | {"gridPos": {"x": 0, "y": top, "w": 24, "h": 1}})
            top += 1
        left = height = 0
        for panel in found:
            size = panel["gridPos"]
            if left + size["w"] > 24:
                left, top = 0, top + height
            placed.append(panel | {"gridPos": {"x": left, "y": top} | size})
            left, height = left + size["w"], size["h"]
        top += height
    source = {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "hide": 0,
    }
    link = {"type": "dashboards", "title": "Forq", "tags": ["forq"], "asDropdown": False, "includeVars": True}
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["forq"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "weekStart": "",
        "fiscalYearStartMonth": 0,
        "links": [
            link | {"keepTime": True, "targetBlank": False, "icon": "external link", "tooltip": "", "url": ""}
        ],
        "annotations": {"list": []},
        "templating": {
            "list": [source | {"current": {}, "options": [], "refresh": 1, "regex": ""}, JOB, *more]
        },
        "panels": [panel | {"id": number} for number, panel in enumerate(placed, start=1)],
    }
