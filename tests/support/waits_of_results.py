"""Batches of acks with results (`waits_of`)."""

from forq_trio.model.commands import AckWithResult
from support.waits_of import Commands, World, case
from support.words import receipts


@case(AckWithResult)
def acks_with_results(world: World, n: int) -> Commands:
    return [
        AckWithResult("q", receipts([each]), f"r{index}", 1_000) for index, each in enumerate(world.leased(n))
    ]
