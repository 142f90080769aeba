"""The dashboard of the server processes, their disk, and PostgreSQL."""

from exprs import JOB, or_else, quantile, quantiles, rate
from looks import ACCENT, BAD, FAINT, INK, MUTED, WARN, steps
from panels import Column, Query, chart, dashboard, heatmap, stat, table

INSTANCE = "{{instance}}"
BY_INSTANCE = "instance, le"
FILE_ONLY = "Only with a database file"
POSTGRES_ONLY = "Only with PostgreSQL"
NO_BACKUP = "None by the server"

NOW = (
    stat(
        "Processes",
        "Server processes on the database. Silent ones were not heard of for 15 seconds.",
        [
            Query(f'max(forq_processes{{{JOB}, state="running"}})', "Running", INK),
            Query(f'max(forq_processes{{{JOB}, state="silent"}})', "Silent", WARN),
        ],
        "none",
        width=4,
        colour_from=1,
    ),
    stat(
        "Calls that wait",
        "Calls that wait to be taken into a commit. From 4,096 on they are refused.",
        [Query(f"max(forq_inbox_calls{{{JOB}}})", "Calls")],
        "none",
        width=3,
        thresholds=steps((WARN, 1_024), (BAD, 3_072)),
    ),
    stat(
        "Writes wait for the disk",
        "One commit in a hundred of the last five minutes waited longer. Above 100 ms it needs attention.",
        [Query(quantile(0.99, "forq_commit_duration_seconds", window="5m"), "p99")],
        "s",
        width=4,
        thresholds=steps((WARN, 0.1), (BAD, 1)),
        none="No commit",
    ),
    stat(
        "Disk free",
        "Free bytes on the disk of the database file; of several servers the least.",
        [Query(f"min(forq_disk_free_bytes{{{JOB}}})", "Free")],
        "bytes",
        width=4,
        thresholds=steps((WARN, 256 * 2**20), (INK, 2**30), first=BAD),
        none=FILE_ONLY,
    ),
    stat(
        "Last backup",
        "How long ago the latest backup that the server made was begun.",
        [Query(f"max(time() - forq_backup_last_success_timestamp_seconds{{{JOB}}})", "Ago")],
        "s",
        width=3,
        thresholds=steps((WARN, 90_000)),
        none=NO_BACKUP,
    ),
    stat(
        "Set aside",
        "Messages of forq.send that their queues refused for good, and that wait for somebody to decide.",
        [Query(f"max(forq_sent_set_aside{{{JOB}}})", "Set aside")],
        "none",
        width=3,
        thresholds=steps((WARN, 1)),
    ),
    stat(
        "Oldest snapshot",
        "How long the oldest snapshot keeps PostgreSQL's vacuum from working. From a minute on it needs attention.",
        [Query(f"max(forq_database_oldest_snapshot_seconds{{{JOB}}})", "Held")],
        "s",
        width=3,
        thresholds=steps((WARN, 60)),
        none=POSTGRES_ONLY,
    ),
)

PROCESSES = (
    table(
        "Processes",
        "The servers that Prometheus reads, with their version, and for how long they run.",
        [
            Column("Server", label="instance"),
            Column(
                "Host",
                f"max by (instance, name, process, version) (forq_process_info{{{JOB}}})",
                label="name",
            ),
            Column("Process", label="process", unit="string"),
            Column("Version", label="version", unit="string"),
            Column("Runs for", f"time() - max by (instance) (process_start_time_seconds{{{JOB}}})", "s"),
            Column("Memory", f"max by (instance) (process_resident_memory_bytes{{{JOB}}})", "bytes"),
            Column("Connections", f'max by (instance) (forq_budget_used{{{JOB}, budget="connections"}})'),
            Column("Waiting consumers", f"sum by (instance) (forq_queue_waiting_consumers{{{JOB}}})"),
        ],
        height=6,
        sort="Runs for",
    ),
    chart(
        "Processor",
        "How much of one processor each process uses. Near 100 % its event loop has no time left.",
        [Query(f"rate(process_cpu_seconds_total{{{JOB}}}[$__rate_interval])", INSTANCE)],
        "percentunit",
        thresholds=steps((WARN, 0.9)),
    ),
    chart(
        "Memory",
        "Resident memory of each process.",
        [Query(f"process_resident_memory_bytes{{{JOB}}}", INSTANCE)],
        "bytes",
    ),
    chart(
        "Open files",
        "Files and sockets that each process has open, of those that it may have.",
        [Query(f"process_open_fds{{{JOB}}} / process_max_fds{{{JOB}}}", INSTANCE)],
        "percentunit",
        thresholds=steps((WARN, 0.9)),
    ),
)

WRITER = (
    chart(
        "Commits",
        "Commits a second that changed something.",
        [Query(rate("forq_commit_duration_seconds_count", by="instance"), INSTANCE)],
        "ops",
    ),
    chart(
        "Calls of a commit",
        "How many calls share a commit on average. It grows with the load: so sends stay quick.",
        [
            Query(
                f"{rate('forq_commit_batch_calls_sum', by='instance')}"
                f" / {rate('forq_commit_batch_calls_count', by='instance')}",
                INSTANCE,
            )
        ],
        "short",
        none="Nothing in this time",
    ),
    chart(
        "Calls that wait",
        "Calls that wait to be taken into a commit, at the time of each scrape. The dashed line is a quarter of what"
        " the inbox takes.",
        [Query(f"forq_inbox_calls{{{JOB}}}", INSTANCE)],
        "short",
        thresholds=steps((WARN, 1_024)),
    ),
    chart(
        "Writes wait for the disk",
        "How long commits waited for the disk. Each send, ack and nack waits for one. The dashed line is 100 ms.",
        quantiles("forq_commit_duration_seconds"),
        "s",
        thresholds=steps((WARN, 0.1)),
        none="Nothing in this time",
    ),
    heatmap(
        "Commits, all of them",
        "How many commits waited how long for the disk.",
        f"sum by (le) (increase(forq_commit_duration_seconds_bucket{{{JOB}}}[$__rate_interval]))",
    ),
    chart(
        "Refused, by what was used up",
        "Refusals a second because the whole of a budget, or somebody's share of it, was in use.",
        [Query(or_else(rate("forq_budget_refusals_total", by="budget, share")), "{{budget}} {{share}}")],
        "ops",
    ),
    chart(
        "Bytes in work",
        "Bodies of requests and answers that are in memory for all clients together.",
        [
            Query(f'sum(forq_budget_used{{{JOB}, budget="bodies"}})', "Bodies", ACCENT),
            Query(f'sum(forq_budget_used{{{JOB}, budget="answers"}})', "Answers", INK),
        ],
        "bytes",
    ),
    chart(
        "Connections",
        "Open connections of the API and of the admin UI.",
        [
            Query(f'sum(forq_budget_used{{{JOB}, budget="connections"}})', "API", ACCENT),
            Query(f"sum(forq_ui_connections{{{JOB}}})", "Admin UI", MUTED),
        ],
        "none",
    ),
    chart(
        "Shares that are used up",
        "How much of its share the client that uses most takes: a token, or the secret. At 100 % it is refused more.",
        [
            Query(
                or_else(f"max by (quota) (forq_quota_key_used{{{JOB}}} / forq_quota_key_limit{{{JOB}}}) > 0"),
                "{{quota}}",
            )
        ],
        "percentunit",
        thresholds=steps((WARN, 0.9)),
    ),
)

DISK = (
    chart(
        "Disk free",
        "Free bytes on the disk of the database file. Sends are refused before it is full.",
        [Query(f"forq_disk_free_bytes{{{JOB}}}", INSTANCE)],
        "bytes",
        none=FILE_ONLY,
    ),
    chart(
        "Database file",
        "The file without its log, its free pages, and the write-ahead log.",
        [
            Query(f"sum(forq_file_bytes{{{JOB}}})", "File", ACCENT),
            Query(f"sum(forq_file_free_bytes{{{JOB}}})", "Free pages", MUTED),
            Query(f"sum(forq_log_bytes{{{JOB}}})", "Log", INK),
        ],
        "bytes",
    ),
    chart(
        "Checkpoints",
        "How long one in a hundred took, and how long commits waited for one.",
        [
            Query(quantile(0.99, "forq_checkpoint_duration_seconds", window="5m"), "Checkpoint", ACCENT),
            Query(quantile(0.99, "forq_checkpoint_pause_seconds", window="5m"), "Pause", BAD),
        ],
        "s",
        none="No checkpoint in this time",
    ),
    chart(
        "History and events",
        "Bytes of finished messages, and of lifecycle events, where they are kept.",
        [
            Query(f"max(forq_history_bytes{{{JOB}}})", "History", ACCENT),
            Query(f"max(forq_events_stored_bytes{{{JOB}}})", "Events", INK),
        ],
        "bytes",
    ),
    chart(
        "Lifecycle events",
        "Events a second that were stored.",
        [Query(f"max(deriv(forq_events_last_id{{{JOB}}}[5m]))", "Events", ACCENT)],
        "ops",
    ),
    chart(
        "Staged, and given back",
        "Bytes that publishers staged and that are not in their queues yet; and those that"
        " compactions gave back to the disk.",
        [
            Query(f"max(forq_staged_bytes{{{JOB}}})", "Staged", ACCENT),
            Query(
                f"sum(increase(forq_file_given_back_bytes_total{{{JOB}}}[$__rate_interval]))",
                "Given back",
                MUTED,
            ),
        ],
        "bytes",
    ),
)

POSTGRES = (
    chart(
        "Wait for other processes",
        "How long batches waited until no other process ran one.",
        quantiles("forq_gate_wait_seconds"),
        "s",
        none=POSTGRES_ONLY,
    ),
    chart(
        "Behind the other processes",
        "How old the batches of other processes were when they were taken over, by server.",
        [Query(quantile(0.99, "forq_process_lag_seconds", by=BY_INSTANCE), "{{instance}} p99")],
        "s",
        none="Only with several servers on PostgreSQL",
    ),
    chart(
        "Connections to PostgreSQL",
        "Ours, all of them, and the limit.",
        [
            Query(f'max(forq_database_connections{{{JOB}, whose="ours"}})', "Ours", ACCENT),
            Query(f'max(forq_database_connections{{{JOB}, whose="all"}})', "All", INK),
            Query(f'max(forq_database_connections{{{JOB}, whose="limit"}})', "Limit", BAD),
        ],
        "none",
        none=POSTGRES_ONLY,
    ),
    chart(
        "Oldest snapshot",
        "How long it keeps vacuum from removing dead rows. The dashed line is a minute.",
        [Query(f"max(forq_database_oldest_snapshot_seconds{{{JOB}}})", "Held", ACCENT)],
        "s",
        thresholds=steps((WARN, 60)),
        none=POSTGRES_ONLY,
    ),
    chart(
        "Dead rows",
        "Dead rows of messages, as PostgreSQL estimates them. Vacuum removes them unless a snapshot is older.",
        [Query(f"max(forq_database_dead_rows{{{JOB}}})", "Dead rows", ACCENT)],
        "short",
        none=POSTGRES_ONLY,
    ),
    chart(
        "Size of the database",
        "Bytes of the whole PostgreSQL database, other tables included.",
        [Query(f"max(forq_database_bytes{{{JOB}}})", "Database", ACCENT)],
        "bytes",
        none=POSTGRES_ONLY,
    ),
)

OTHERS = (
    chart(
        "How late schedules send",
        "How much later than its time, with jitter, a run sent its message. Above a few seconds the server does more"
        " than it can.",
        quantiles("forq_schedule_lateness_seconds", window="15m"),
        "s",
        thresholds=steps((WARN, 5)),
        none="No run in this time",
    ),
    chart(
        "Admin UI's share of the event loop",
        "How much of the event loop's time the admin UI used, by the share of it that paid.",
        [Query(rate("forq_ui_loop_seconds_total", by="share"), "{{share}}")],
        "percentunit",
        none="No admin UI is served",
    ),
    chart(
        "Messages of forq.send that were set aside",
        "Messages that applications committed in their own transactions, and that their queues refused for good.",
        [
            Query(
                or_else(f"sum(increase(forq_sent_set_aside_total{{{JOB}}}[$__rate_interval]))"),
                "Set aside",
                FAINT,
            )
        ],
        "none",
    ),
)

DASHBOARD = dashboard(
    "forq-processes",
    "Forq / Processes and PostgreSQL",
    "The server processes: their writer, their disk, and the PostgreSQL database that they may share.",
    [
        ("", NOW),
        ("Processes", PROCESSES),
        ("The writer", WRITER),
        ("The disk", DISK),
        ("PostgreSQL", POSTGRES),
        ("Beside the queues", OTHERS),
    ],
)
