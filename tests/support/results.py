"""Results of settlements and moves, shortened."""

from collections.abc import Iterable

from forq_trio import MoveResult, ReceiptResult


def oks(results: Iterable[ReceiptResult | MoveResult]) -> list[bool]:
    """For each receipt or message, whether it was done."""
    return [result.ok for result in results]
