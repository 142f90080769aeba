"""How long a message waits after a failed attempt, by the back-off of its queue or of its handler."""

from math import log

from forq_trio.model.queues.setting_values import BackOff, ExponentialBackOff


def backoff_ms(attempts: int, back_off: BackOff, seq: int) -> int:
    """The delay in ms after the attempt with this number (from 1).

    seq: of the message. The random share of a formula is computed from it, so that all engines get the same result.
    """
    attempts = max(attempts, 1)
    if not isinstance(back_off, ExponentialBackOff):
        return back_off[min(attempts, len(back_off)) - 1]
    return round(_grown_ms(attempts - 1, back_off) * (1 - back_off.jitter * _share(seq, attempts)))


def _grown_ms(steps: int, back_off: ExponentialBackOff) -> float:
    """initial x factor^steps, at most max. A power that would exceed max is not computed: a float might overflow."""
    initial, longest = back_off.initial_ms, back_off.max_ms
    if steps * log(back_off.factor) >= log(longest / initial):
        return longest
    return min(initial * back_off.factor**steps, longest)


def _share(seq: int, attempts: int) -> float:
    """A number in [0, 1) that looks random but depends only on its arguments (one step of splitmix64)."""
    mixed = (seq * 1_000 + attempts) * 0x9E37_79B9_7F4A_7C15 & 0xFFFF_FFFF_FFFF_FFFF
    mixed = (mixed ^ mixed >> 30) * 0xBF58_476D_1CE4_E5B9 & 0xFFFF_FFFF_FFFF_FFFF
    mixed = (mixed ^ mixed >> 27) * 0x94D0_49BB_1331_11EB & 0xFFFF_FFFF_FFFF_FFFF
    return (mixed >> 11) / 2**53
