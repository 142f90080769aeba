"""Words and colours, as the admin UI has them: a state or a level looks the same on every page.

Grafana has one colour for its light and its dark theme, the admin UI one for each: these lie between the two.
"""

from typing import Any

from objectives import TOO_OLD_SECONDS

from forq_trio.model.engine_facts import REFUSAL_WORDS

INK = "text"  # Grafana's own name: the colour of text in either theme
ACCENT = "#2b9aa7"
MUTED = "#8d9aa1"
FAINT = "#66757d"
WARN = "#c4852a"
BAD = "#d9544a"

STATES = {
    "ready": ("Ready", ACCENT),
    "processing": ("In flight", INK),
    "delayed": ("Delayed", MUTED),
    "held": ("Held", FAINT),
    "failed": ("Failed", WARN),
}
"""Of a message: the word for each, and its colour."""

LEVELS = {"broken": BAD, "attention": WARN, "paused": MUTED, "fine": FAINT}
"""Of a queue's health, the worst one first."""

REFUSED = {
    "0": ("No", FAINT),
    "1": (REFUSAL_WORDS["storage_full"], BAD),
    "2": (REFUSAL_WORDS["storage_lost"], BAD),
    "3": (REFUSAL_WORDS["storage_lost"], BAD),
}
"""Whether sends are refused: 1 for a full disk, and 2 for a missing file."""

HEALTH = {"3": "broken", "2": "attention", "1": "paused", "0": "fine"}
"""Levels as numbers, so that a table can be sorted by them; see `exprs.health`."""
HEALTH_WORDS = {number: (level.capitalize(), LEVELS[level]) for number, level in HEALTH.items()}


def mapping(words: dict[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Shows values as words in colours."""
    options = {
        value: {"text": text, "color": colour, "index": index}
        for index, (value, (text, colour)) in enumerate(words.items())
    }
    return [{"type": "value", "options": options}]


def steps(*found: tuple[str, float], first: str = INK) -> dict[str, Any]:
    """Colours from these values on. first: that of what is below all of them."""
    begins = [{"color": first, "value": None}, *({"color": colour, "value": at} for colour, at in found)]
    return {"mode": "absolute", "steps": begins}


AGE = steps((WARN, 60), (BAD, TOO_OLD_SECONDS))
"""Of the oldest message, in seconds."""
