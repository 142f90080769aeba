"""Imports run one way: cli -> app -> ui -> system, http -> jobs -> monitor -> broker -> actors -> engine -> model.

Every module belongs to a group, and a group imports itself and the groups named for it here, no other.
"""

import ast
from graphlib import CycleError, TopologicalSorter

import pytest

from support.source import parsed, statements

TOPICS = (
    *("access", "consumers", "dead_letters", "keys", "logs", "message_batches", "messages", "outboxes"),
    *("publishing", "queues", "results", "schedules", "server", "workers"),
)
GROUPS = {
    "model": {"model"},
    "telemetry": {"telemetry"},
    "config": {"config"},
    "seam": {"storage.engine", "storage.reader", "storage.write_ahead_log", "storage.on_disk"},
    "schedules": {"schedules"},
    "storage": {"storage"},
    "statements": {"storage.relational.statements"},
    "relational": {"storage.relational"},
    "sqlite": {"storage.sqlite"},
    "postgres": {"storage.postgres"},
    "oracle": {"oracle"},
    "temporary": {"storage.sqlite.files.temporary"},
    "actors": {
        "writer_actor",
        "writer_families",
        "announcements",
        "due_timer",
        "step_scheduler",
        "storage_state",
        "waiters",
        "watches",
        "inbox",
        "store",
        "commit_policy",
        "readers",
    },
    "in_place": {"in_place"},
    "broker": {"broker"},
    "monitor": {"monitor"},
    "jobs": {"jobs"},
    "api": {
        *(
            "model.endpoint",
            "model.command_methods",
            "model.error_answers",
            "model.paths",
            "model.queries",
            "model.bounds.client",
        ),
        *(f"model.{topic}.{part}" for topic in TOPICS for part in ("bodies", "endpoints", "methods")),
        *(f"model.logs.history_{part}" for part in ("bodies", "endpoints", "methods")),
        *("model.consumers.consuming", "model.messages.export", "model.messages.receipts"),
        *("model.messages.settlement_methods", "model.server.backups", "model.server.compaction"),
        *(f"model.server.{part}" for part in ("process_bodies", "process_endpoints")),
        *(f"model.server.{part}" for part in ("backup_endpoints", "compaction_endpoints")),
    },
    "http": {"http"},
    "ui": {"ui"},
    "drawing": {"drawing"},
    "engines": {"storage.open"},
    "system": {"system"},
    "app": {"app"},
    "files": {"storage.sqlite.files.check", "storage.sqlite.files.restore", "storage.sqlite.files.compact"},
    "demo": {"demo"},
    "cli": {"cli", "__main__"},
    "client": {"client"},
    "spark": {"pyspark_forq"},
    "embedding": {"worker", "delayed"},
    "outbox": {"outbox"},
    "pgq": {"pgq"},
    "tables": {
        f"pgq.{name}"
        for name in (
            *("claims", "connections", "errors", "layout", "messages"),
            *("publisher", "receipts", "statements", "tables", "wakes", "walks"),
        )
    },
    "guests": {"embedded"},
    "blocking": {"embedded.blocking"},
    "names": {""},
}
MAY_IMPORT = {
    "model": set(),
    "telemetry": {"model", "seam"},
    "config": {"model"},
    "seam": {"model"},
    "schedules": {"model"},
    "storage": {"model", "telemetry", "seam", "schedules"},
    "statements": set(),
    "relational": {"statements", "model", "telemetry", "seam", "storage", "schedules"},
    "sqlite": {"model", "telemetry", "seam", "storage", "schedules", "relational", "statements"},
    "postgres": {"model", "telemetry", "seam", "storage", "schedules", "relational", "statements"},
    "oracle": {"model", "seam", "storage", "schedules"},
    "files": {"model", "storage", "relational", "sqlite", "statements"},
    "temporary": {"model"},
    "in_place": set(),
    "actors": {"model", "telemetry", "seam", "in_place"},
    "broker": {"model", "telemetry", "seam", "actors", "api", "schedules", "in_place"},
    "monitor": {"model", "telemetry", "seam", "actors", "broker", "api"},
    "jobs": {"model", "telemetry", "seam", "actors", "broker", "monitor", "api"},
    "api": {"model"},
    "http": {"model", "telemetry", "broker", "monitor", "jobs", "api", "in_place"},
    "drawing": {"model", "telemetry"},
    "ui": {
        "drawing",
        "schedules",
        "model",
        "telemetry",
        "config",
        "broker",
        "monitor",
        "jobs",
        "http",
        "api",
        "system",
    },
    "engines": {"model", "seam", "storage", "sqlite", "postgres", "temporary"},
    "guests": {"model", "telemetry", "broker"},
    "system": {
        "model",
        "telemetry",
        "seam",
        "actors",
        "broker",
        "monitor",
        "jobs",
        "engines",
        "guests",
        "outbox",
        "tables",
    },
    "outbox": {"model", "statements"},
    "blocking": {"model", "api", "broker", "client", "guests", "system"},
    "app": {
        "model",
        "telemetry",
        "config",
        "seam",
        "actors",
        "broker",
        "jobs",
        "http",
        "ui",
        "engines",
        "system",
    },
    "demo": {"model", "config", "broker", "system", "app", "ui", "embedding", "temporary"},
    "cli": {
        "api",
        "demo",
        "model",
        "telemetry",
        "config",
        "app",
        "client",
        "files",
        "engines",
        "spark",
        "embedding",
        "outbox",
        "tables",
    },
    "client": {"model", "api"},
    "spark": {"model", "api", "client", "drawing"},
    "embedding": {"model", "api", "broker", "client", "system", "outbox", "schedules", "blocking"},
    "pgq": {"model", "tables", "embedding"},
    "tables": {"model", "api", "statements"},
    "names": {"model", "broker", "api", "system", "client", "embedding", "outbox", "blocking"},
}
AT_HOME = {
    "apsw": ("storage.sqlite",),
    "psycopg": ("storage.postgres", "pgq"),
    "httptools": ("http", "client"),
    "cronsim": ("schedules",),
    "hpack": ("http",),
    "certifi": ("client",),
    "pydantic": ("config", "worker.payloads"),
    "pydantic_settings": ("config",),
    "click": ("cli",),
    "django": ("worker.django",),
    "django_tasks": ("worker.django",),
    "flask": ("worker.flask",),
    "rich": ("cli",),
    "hypercorn": ("ui",),
    "jinja2": ("ui", "pyspark_forq"),
    "quart": ("ui",),
    "quart_trio": ("ui",),
    "opentelemetry": ("model.tracing", "worker.tracing", "client.tracing", "broker.tracing", "http.tracing"),
    "pyspark": ("pyspark_forq",),
    "pyarrow": ("pyspark_forq",),
}
FOR_FEW_TESTS = {"sqlalchemy", "django", "flask", "fastapi"}
"""Of other libraries' tests: SQLAlchemy and Django take a second of processor time to import."""
DIALECTS = ("http.forq_api", "http.sasquatch_api", "http.sqs_api")


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("forq_trio", "pyspark_forq", "oracle")


def short_name(module: str) -> str:
    """The name that a module has among `modules`."""
    return module.removeprefix("forq_trio").lstrip(".")


def group_of(module: str) -> str:
    """The group of the longest name that covers the module."""
    candidates = [
        (len(name), group)
        for group, names in GROUPS.items()
        for name in names
        if module == name or (name and within(module, name))
    ]
    assert candidates, f"{module} belongs to no group: say in GROUPS where it stands"
    return max(candidates)[1]


@pytest.fixture(scope="module")
def imports(modules) -> dict[str, set[str]]:
    """Which of our modules each of our modules imports, anywhere in it."""
    graph = {}
    for name, tree in modules.items():
        found: set[str] = set()
        for node in statements(tree):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{name} imports relatively"
                if is_ours(node.module or ""):
                    parent = short_name(node.module or "")
                    for alias in node.names:
                        child = f"{parent}.{alias.name}".lstrip(".")
                        found.add(child if child in modules else parent)
            elif isinstance(node, ast.Import):
                found.update(short_name(alias.name) for alias in node.names if is_ours(alias.name))
        graph[name] = found - {name}
    return graph


def test_every_import_goes_down(imports) -> None:
    wrong = [
        f"{module or 'forq_trio'} ({group_of(module)}) imports {target or 'forq_trio'} ({group_of(target)})"
        for module, targets in imports.items()
        for target in targets
        if group_of(target) not in MAY_IMPORT[group_of(module)] | {group_of(module)}
    ]
    assert wrong == []


def test_there_are_no_cycles(imports) -> None:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle of imports: {' -> '.join(error.args[1])}")


def test_dialects_do_not_know_each_other(imports) -> None:
    wrong = [
        f"{module} imports {target}"
        for module, targets in imports.items()
        for target in targets
        for own in DIALECTS
        for other in DIALECTS
        if own != other and within(module, own) and within(target, other)
    ]
    assert wrong == []


def test_libraries_stay_where_they_are_used(modules) -> None:
    wrong = []
    for name, tree in modules.items():
        for node in statements(tree):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                named = [node.module or ""]
            wrong += [
                f"{name} imports {library}"
                for library in (dotted.partition(".")[0] for dotted in named)
                if library in AT_HOME and not any(within(name, home) for home in AT_HOME[library])
            ]
    assert wrong == []


def test_what_few_tests_need_is_imported_by_them(python_files, root) -> None:
    """Not with their file: each process of a run imports the files of all tests."""
    wrong = [
        f"{path.relative_to(root)}: {ast.unparse(node)}"
        for path in python_files
        if path.is_relative_to(root / "tests")
        and any(name in path.read_text(encoding="utf-8") for name in FOR_FEW_TESTS)
        for node in parsed(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
        if name.partition(".")[0] in FOR_FEW_TESTS
    ]
    assert wrong == []


def test_spark_is_loaded_when_a_pipeline_runs(modules) -> None:
    """Not with the module of a command: its help, and the error that names the extra, need no Spark."""
    wrong = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in modules.items()
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and not within(name, "pyspark_forq")
        and "pyspark_forq" in ast.unparse(node)
    ]
    assert wrong == []


def test_the_rules_have_no_cycle_themselves() -> None:
    TopologicalSorter(MAY_IMPORT).prepare()
    assert set(MAY_IMPORT) == set(GROUPS)
