"""The settings of a queue in words, for the side of its page. Plain functions."""

from forq_trio.drawing import format
from forq_trio.model.queue_settings import QueueRules, QueueSettings
from forq_trio.ui.settings_form import ORDERS, OVERFLOWS, back_off_words


def set_ones(settings: QueueSettings, rules: QueueRules) -> list[tuple[str, str, str]]:
    """What was set: label, words, and the queue that it names or ""."""
    found: list[tuple[str, str, str]] = []

    def add(label: str, value: object, words: str, queue: str = "") -> None:
        if value is not None:
            found.append((label, words, queue))

    add("Lease", settings.lease_ms, format.setting(rules.lease_ms))
    add("Attempts", settings.max_attempts, format.whole(rules.max_attempts))
    add("Back-off", settings.back_off, back_off_words(rules.back_off))
    add("Delay", settings.delay_ms, format.setting(rules.delay_ms))
    add("Time to live", settings.ttl_ms, format.setting(rules.ttl_ms))
    target = rules.dead_letter_queue
    add("Dead letters to", settings.dead_letter_queue, target or "none, they are deleted", target)
    overflow = OVERFLOWS[rules.overflow]
    if rules.max_messages is not None:
        add("Most messages", rules.max_messages, f"{format.whole(rules.max_messages)}, then {overflow}")
    if rules.max_bytes is not None:
        add("Most bytes", rules.max_bytes, f"{format.size(rules.max_bytes)}, then {overflow}")
    if rules.max_messages is None and rules.max_bytes is None:
        add("When full", settings.overflow, overflow)
    add("In flight, a group", settings.group_in_flight_max, format.whole(rules.group_in_flight_max or 0))
    add("Deduplication", settings.deduplication_window_ms, format.setting(rules.deduplication_window_ms))
    add("Order", settings.order, ORDERS[rules.order])
    return found


def default_ones(settings: QueueSettings, rules: QueueRules) -> str:
    """What was not set, in one line."""
    words = [
        (settings.lease_ms, f"lease {format.setting(rules.lease_ms)}"),
        (settings.max_attempts, format.plural(rules.max_attempts, "attempt")),
        (settings.back_off, f"back-off {back_off_words(rules.back_off)}"),
        (settings.delay_ms, "no delay"),
        (settings.ttl_ms, f"time to live {format.setting(rules.ttl_ms)}"),
        (
            settings.dead_letter_queue,
            f"dead letters to {rules.dead_letter_queue}" if rules.dead_letter_queue else "no dead letters",
        ),
        (settings.max_messages if settings.max_bytes is None else settings.max_bytes, "no bound"),
        (settings.order, f"order {ORDERS[rules.order]}"),
    ]
    left = [text for value, text in words if value is None]
    if not left:
        return ""
    line = ", ".join(left)
    return f"{line[:1].upper()}{line[1:]}: {'default' if len(left) == 1 else 'defaults'}."
