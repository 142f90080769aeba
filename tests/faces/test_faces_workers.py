"""Workers make themselves known in the same way through every face."""

import pytest

from forq_trio import InvalidQueueName, InvalidRequest, OutOfRange
from support.workers import held, part, report, worker_id

from .face import Face


async def test_a_worker_is_known_until_it_ends(face: Face) -> None:
    first = report(1, part("q", busy=4, handled=7, holds=(held(),)), part("other"))
    await face.methods.report_worker(first)
    await face.methods.report_worker(report(2))
    found = await face.methods.workers()
    assert [info.report for info in found] == [first, report(2)]
    assert (found[0].silent, found[0].made_by, list(found[0].queue_busy_since)) == (False, "", ["q"])
    assert [info.report.id for info in await face.methods.workers("other")] == [worker_id(1)]
    for _ in range(2):
        await face.methods.forget_worker(worker_id(1))
    assert [info.report.id for info in await face.methods.workers()] == [worker_id(2)]


async def test_what_is_wrong_is_refused(face: Face) -> None:
    with pytest.raises(OutOfRange):
        await face.methods.report_worker(report(1, part(slots=-1)))
    with pytest.raises(InvalidRequest):
        await face.methods.forget_worker("x")
    with pytest.raises(InvalidQueueName):
        await face.methods.workers("no such/name")
    assert await face.methods.workers() == []
