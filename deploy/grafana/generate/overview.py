"""The dashboard of all queues together: whether they need attention, and which."""

from exprs import JOB, health, once, or_else, quantiles, rate, total
from looks import (
    ACCENT,
    AGE,
    BAD,
    FAINT,
    HEALTH_WORDS,
    INK,
    LEVELS,
    MUTED,
    REFUSED,
    STATES,
    WARN,
    mapping,
    steps,
)
from objectives import DIED, FAST, FAST_WINDOW, OBJECTIVES, OLDEST, PERIOD_DAYS, SENDS
from panels import Column, Query, chart, dashboard, stat, table

REGULAR = f'{JOB}, queue_type="regular"'
DEAD = f'{JOB}, queue_type="dlq"'
TO_QUEUE = (
    "/d/forq-queue?var-datasource=${datasource}&var-job=${job}&var-queue=${__value.text}&${__url_time_range}"
)


def _of_level(level: str) -> str:
    return or_else(f'sum(max by (queue_name, queue_type) (forq_queue_health{{{JOB}, level="{level}"}}))')


def _of_state(state: str) -> str:
    return or_else(total("forq_queue_messages", f'{REGULAR}, state="{state}"'))


NOW = (
    stat(
        "Servers that answer",
        "Servers whose metrics Prometheus could read just now.",
        [Query(or_else(f"sum(up{{{JOB}}})"), "Servers")],
        "none",
        width=3,
        thresholds=steps((INK, 1), first=BAD),
    ),
    stat(
        "Queues by health",
        "How many queues have a verdict of each level, as the admin UI shows it: broken and attention need somebody.",
        [Query(_of_level(level), level.capitalize(), colour) for level, colour in LEVELS.items()],
        "none",
        width=5,
        colour_from=1,
    ),
    stat(
        "Sends refused",
        "Whether sends to all queues are refused, and why.",
        [
            Query(
                f'max(forq_sends_refused{{{JOB}, cause="storage_full"}})'
                f' + 2 * max(forq_sends_refused{{{JOB}, cause="storage_lost"}})',
                "Refused",
            )
        ],
        "none",
        width=4,
        mappings=mapping(REFUSED),
    ),
    stat(
        "Oldest message",
        "How long the oldest message of any queue could have been claimed. Dead-letter queues do not count.",
        [Query(or_else(f"max(forq_queue_oldest_claimable_age_seconds{{{REGULAR}}})"), "Oldest")],
        "s",
        width=3,
        thresholds=AGE,
    ),
    stat(
        "Messages",
        "Messages of all queues by state, without those in dead-letter queues.",
        [Query(_of_state(state), *STATES[state]) for state in ("ready", "processing", "delayed", "held")],
        "short",
        width=6,
    ),
    stat(
        "Dead letters",
        "Messages in dead-letter queues: they failed or expired and wait for somebody to look at them.",
        [Query(or_else(total("forq_queue_depth", DEAD)), "Dead letters")],
        "short",
        width=3,
        thresholds=steps((BAD, 1)),
    ),
    chart(
        "Sent and acked",
        "Messages a second. Where more is sent than acked for long, messages pile up.",
        [
            Query(or_else(rate("forq_messages_produced_total", REGULAR)), "Sent", ACCENT),
            Query(or_else(rate("forq_messages_acked_total", REGULAR)), "Acked", INK),
        ],
        "mps",
    ),
    chart(
        "Messages by state",
        "Messages of all queues, without those in dead-letter queues. Refreshed every 30 seconds.",
        [Query(_of_state(state), *look) for state, look in STATES.items()],
        "short",
        stacked=True,
    ),
    chart(
        "Oldest message by queue",
        "The five queues whose oldest message could have been claimed for longest.",
        [
            Query(
                f"topk(5, {once('forq_queue_oldest_claimable_age_seconds', REGULAR)})"
                f" or 0 * topk(5, {once('forq_queue_depth', REGULAR)})",
                "{{queue_name}}",
            )
        ],
        "s",
    ),
)

OBJECTIVE = (
    stat(
        "Error budget left",
        f"Of {PERIOD_DAYS} days, or as far as Prometheus remembers; for oldest message and dead letters that of the"
        " worst queue. Below 0 % the objective is missed.",
        [Query(or_else(f"1 - {each.used(JOB, f'{PERIOD_DAYS}d')}", 1), each.name) for each in OBJECTIVES],
        "percentunit",
        width=8,
        height=8,
        thresholds=steps((WARN, 0), (INK, 0.25), first=BAD),
    ),
    chart(
        "How fast the budget burns",
        f"1 uses it up in exactly {PERIOD_DAYS} days. At {FAST:g} over an hour, the dashed line,"
        f" {SENDS.alert}, {OLDEST.alert} or {DIED.alert} are critical.",
        [Query(or_else(each.used(JOB, FAST_WINDOW)), each.name) for each in OBJECTIVES],
        "none",
        width=16,
        thresholds=steps((BAD, FAST)),
    ),
)

QUEUES = table(
    "Queues",
    "All queues, those in trouble first. A click on a name opens its page.",
    [
        Column("Queue", label="queue_name", link=TO_QUEUE),
        Column("Health", health(by="queue_name"), "none", words=HEALTH_WORDS),
        Column("Ready", once("forq_queue_messages", f'{JOB}, state="ready"')),
        Column("In flight", once("forq_queue_messages", f'{JOB}, state="processing"')),
        Column("Delayed", once("forq_queue_messages", f'{JOB}, state="delayed"')),
        Column("Held", once("forq_queue_messages", f'{JOB}, state="held"')),
        Column("Oldest", once("forq_queue_oldest_claimable_age_seconds"), "s", thresholds=AGE),
        Column("Sent", rate("forq_messages_produced_total", by="queue_name"), "mps"),
        Column("Acked", rate("forq_messages_acked_total", by="queue_name"), "mps"),
        Column("Dead letters", once("forq_queue_dead_letters"), thresholds=steps((BAD, 1))),
        Column("Waiting consumers", f"sum by (queue_name) (forq_queue_waiting_consumers{{{JOB}}})"),
        Column("Bytes", once("forq_queue_bytes"), "bytes"),
    ],
    height=10,
    sort="Health",
)

FAILS = (
    chart(
        "Messages that died",
        "Messages a second that went to a dead-letter queue, of the ten queues with the most.",
        [
            Query(
                or_else(f"topk(10, {rate('forq_messages_moved_to_dlq_total', by='queue_name')})"),
                "{{queue_name}}",
            )
        ],
        "mps",
    ),
    chart(
        "Failed attempts",
        "Messages a second that consumers gave back with a nack, and those whose lease ended without an ack. Both are"
        " delivered again.",
        [
            Query(or_else(rate("forq_messages_nacked_total")), "Nacked", WARN),
            Query(or_else(rate("forq_messages_stale_recovered_total")), "Lease ended", BAD),
        ],
        "mps",
    ),
    chart(
        "Refused",
        "Calls and requests a second that were refused, by cause. docs/metrics.md says what each cause means.",
        [Query(or_else(f"{rate('forq_rejections_total', by='cause')} > 0"), "{{cause}}")],
        "reqps",
    ),
)

TIMES = tuple(
    chart(
        title,
        description,
        quantiles(name, REGULAR),
        "s",
        none="Nothing in this time",
    )
    for title, description, name in (
        (
            "Wait for a consumer",
            "From when a message could be claimed until it was. Half of the messages waited less than p50, one in a"
            " hundred more than p99.",
            "forq_message_wait_seconds",
        ),
        ("From send to ack", "How long messages were in the queue in all, other attempts included.",
         "forq_message_end_to_end_seconds"),
        ("Handling", "From when a message was claimed until it was acknowledged within its lease.",
         "forq_message_handling_seconds"),
    )
)  # fmt: skip

WORK = (
    chart(
        "Workers",
        "Workers that make themselves known. Silent ones were not heard of for 15 seconds.",
        [
            Query(f'sum(forq_workers{{{JOB}, state="busy"}})', "Busy", ACCENT),
            Query(f'sum(forq_workers{{{JOB}, state="idle"}})', "Idle", MUTED),
            Query(f'sum(forq_workers{{{JOB}, state="silent"}})', "Silent", WARN),
        ],
        "none",
        stacked=True,
    ),
    chart(
        "Slots of workers",
        "How many messages the workers can handle at once, and how many they do. All busy for long: more workers are"
        " needed.",
        [
            Query(or_else(f"sum(forq_worker_slots{{{JOB}}})"), "Slots", MUTED),
            Query(or_else(f"sum(forq_worker_slots_busy{{{JOB}}})"), "Busy", ACCENT),
        ],
        "none",
    ),
    chart(
        "Runs of schedules",
        "Runs a second whose time came: sent; skipped, because an earlier message is still in the queue; missed, a"
        " minute late or more; refused by the queue.",
        [
            Query(rate("forq_schedule_runs_total", f'{JOB}, result="{result}"'), result.capitalize(), colour)
            for result, colour in (("sent", ACCENT), ("skipped", FAINT), ("missed", BAD), ("refused", WARN))
        ],
        "ops",
    ),
)

DASHBOARD = dashboard(
    "forq-overview",
    "Forq / Overview",
    "All queues together: whether they need attention, and which.",
    [
        ("", NOW),
        ("Objectives", OBJECTIVE),
        ("Queues", [QUEUES]),
        ("What fails", FAILS),
        ("Times", TIMES),
        ("Workers and schedules", WORK),
    ],
)
