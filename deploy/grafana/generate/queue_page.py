"""The dashboard of one queue."""

from exprs import JOB, health, once, or_else, quantiles, rate
from looks import ACCENT, AGE, BAD, FAINT, HEALTH_WORDS, INK, MUTED, STATES, WARN, mapping, steps
from objectives import DIED, TOO_OLD_SECONDS
from panels import Query, chart, dashboard, heatmap, stat, timeline, variable

AT = f'{JOB}, queue_name="$queue"'
LEVEL = health(AT, by="")
NO_TIMES = "Nothing in this time; only the first 100 queues have times of their own"


def _gauge(name: str, more: str = "") -> str:
    return f"max({name}{{{AT}{more}}})"


NOW = (
    stat(
        "Health",
        "The level of the verdict on this queue. Its page in the admin UI has the verdict in words, and a remedy.",
        [Query(LEVEL, "Health")],
        "none",
        width=4,
        mappings=mapping(HEALTH_WORDS),
    ),
    stat(
        "Messages",
        "Its messages by state. Refreshed every 30 seconds.",
        [
            Query(or_else(_gauge("forq_queue_messages", f', state="{state}"')), *STATES[state])
            for state in ("ready", "processing", "delayed", "held")
        ],
        "short",
        width=8,
    ),
    stat(
        "Oldest message",
        "How long its oldest ready message could have been claimed.",
        [Query(or_else(_gauge("forq_queue_oldest_claimable_age_seconds")), "Oldest")],
        "s",
        width=3,
        thresholds=AGE,
    ),
    stat(
        "Dead letters",
        "Messages in its dead-letter queue. If queues share one, these are those of all of them.",
        [Query(or_else(_gauge("forq_queue_dead_letters")), "Dead letters")],
        "short",
        width=3,
        thresholds=steps((BAD, 1)),
    ),
    stat(
        "Waiting consumers",
        "Consumers that wait for a message, now.",
        [Query(or_else(f"sum(forq_queue_waiting_consumers{{{AT}}})"), "Waiting")],
        "none",
        width=3,
    ),
    stat(
        "Bytes",
        "Content and attributes of its messages.",
        [Query(or_else(_gauge("forq_queue_bytes")), "Bytes")],
        "bytes",
        width=3,
    ),
    timeline(
        "Health over time",
        "The level of its verdict. A cause is shown after a minute (broken) or five (attention).",
        Query(LEVEL, "Health"),
        HEALTH_WORDS,
    ),
    chart(
        "Sent, delivered and acked",
        "Messages a second. What is delivered and not acked is nacked, or its lease ends.",
        [
            Query(or_else(rate("forq_messages_produced_total", AT)), "Sent", ACCENT),
            Query(or_else(rate("forq_messages_consumed_total", AT)), "Delivered", MUTED),
            Query(or_else(rate("forq_messages_acked_total", AT)), "Acked", INK),
        ],
        "mps",
    ),
    chart(
        "Messages by state",
        "What it holds. Refreshed every 30 seconds.",
        [
            Query(or_else(_gauge("forq_queue_messages", f', state="{state}"')), *look)
            for state, look in STATES.items()
        ],
        "short",
        stacked=True,
    ),
    chart(
        "Oldest message",
        "How long its oldest ready message could have been claimed. The dashed line is the objective,"
        f" {TOO_OLD_SECONDS // 60} minutes.",
        [Query(or_else(_gauge("forq_queue_oldest_claimable_age_seconds")), "Oldest", ACCENT)],
        "s",
        thresholds=steps((BAD, TOO_OLD_SECONDS)),
    ),
)

TIMES = (
    *(
        chart(
            title,
            description,
            quantiles(name, AT, shares=shares),
            "s",
            none=NO_TIMES,
        )
        for title, description, name, shares in (
            ("Wait for a consumer", "From when a message could be claimed until it was.",
             "forq_message_wait_seconds", (0.5, 0.99)),
            ("From send to ack", "How long messages were in the queue in all, other attempts included.",
             "forq_message_end_to_end_seconds", (0.5, 0.99)),
            ("Handling", "From when a message was claimed until it was acknowledged within its lease. The lease should"
             " be twice as long as p99.",
             "forq_message_handling_seconds", (0.5, 0.9, 0.99)),
        )
    ),
    heatmap(
        "Waits, all of them",
        "How many messages waited how long. Two bands are two kinds of messages, or bursts.",
        f"sum by (le) (increase(forq_message_wait_seconds_bucket{{{AT}}}[$__rate_interval]))",
        width=12,
        none=NO_TIMES,
    ),
    heatmap(
        "Handling times, all of them",
        "How many messages took consumers how long.",
        f"sum by (le) (increase(forq_message_handling_seconds_bucket{{{AT}}}[$__rate_interval]))",
        width=12,
        none=NO_TIMES,
    ),
)  # fmt: skip

FAILS = (
    chart(
        "Failed attempts",
        "Messages a second that consumers gave back with a nack, and those whose lease ended without an ack.",
        [
            Query(or_else(rate("forq_messages_nacked_total", AT)), "Nacked", WARN),
            Query(or_else(rate("forq_messages_stale_recovered_total", AT)), "Lease ended", BAD),
        ],
        "mps",
    ),
    chart(
        "Messages that died",
        "Messages a second that went to the dead-letter queue: failed, with no attempts left; expired; overflow,"
        " evicted from a full queue.",
        [
            Query(or_else(rate("forq_messages_moved_to_dlq_total", f'{AT}, reason="{reason}"')), word, colour)
            for reason, word, colour in (
                ("failed", "Failed", BAD),
                ("expired", "Expired", WARN),
                ("overflow", "Overflow", FAINT),
            )
        ],
        "mps",
    ),
    chart(
        "Share that died",
        "Of the messages that ended in the last 5 minutes. The dashed line is the objective,"
        f" {DIED.allowed * 100:g} %.",
        [
            Query(
                or_else(
                    f"max(forq:queue_dead:rate5m{{{AT}}}) / clamp_min(max(forq:queue_ended:rate5m{{{AT}}}), 1e-9)"
                ),
                "Died",
                BAD,
            )
        ],
        "percentunit",
        thresholds=steps((BAD, DIED.allowed)),
    ),
)

WORK = (
    chart(
        "Slots of workers",
        "How many of its messages the workers can handle at once, and how many they do.",
        [
            Query(or_else(f"sum(forq_worker_slots{{{AT}}})"), "Slots", MUTED),
            Query(or_else(f"sum(forq_worker_slots_busy{{{AT}}})"), "Busy", ACCENT),
        ],
        "none",
    ),
    chart(
        "Waiting consumers",
        "Consumers that wait for a message at the time of each scrape. None, and messages that wait: nobody consumes.",
        [Query(or_else(f"sum(forq_queue_waiting_consumers{{{AT}}})"), "Waiting", ACCENT)],
        "none",
    ),
    chart(
        "Offers with a key",
        "Offers a second by what became of them: a new message, a change of the one that waits, or nothing.",
        [
            Query(or_else(rate("forq_messages_offered_total", f'{AT}, reason="{reason}"')), word, colour)
            for reason, word, colour in (
                ("created", "Created", ACCENT),
                ("updated", "Updated", MUTED),
                ("ignored", "Ignored", FAINT),
            )
        ],
        "ops",
    ),
    chart(
        "Pipelines: what they could lease",
        "Messages that each consumer of a pipeline could lease, now.",
        [Query(or_else(once("forq_consumer_lag_messages", AT, by="consumer")), "{{consumer}}")],
        "short",
        width=12,
    ),
    chart(
        "Pipelines: what they work on",
        "Messages of the open lease of each consumer of a pipeline.",
        [Query(or_else(once("forq_consumer_open_messages", AT, by="consumer")), "{{consumer}}")],
        "short",
        width=12,
    ),
)

QUEUE = variable("queue", "Queue", 'label_values(forq_queue_depth{job="$job"}, queue_name)')

DASHBOARD = dashboard(
    "forq-queue",
    "Forq / Queue",
    "One queue: its messages, its times, what fails, and who works on it.",
    [("", NOW), ("Times", TIMES), ("What fails", FAILS), ("Who works on it", WORK)],
    QUEUE,
)
