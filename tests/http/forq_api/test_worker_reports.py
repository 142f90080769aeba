"""Reports of many workers at once: a large one takes milliseconds of the loop, so each has a pass of its own."""

import msgspec
import trio

from forq_trio.model.workers.bodies import WorkerState
from support.forq_api import Api
from support.passes import Passes
from support.workers import part, report, worker_id

REPORTS = 20


async def test_each_pass_of_the_loop_reads_one_report(api: Api, monkeypatch):
    passes, read_in = Passes(), []
    take = api.broker.report_worker

    async def noted(*arguments, **options):
        read_in.append(passes.count)  # no wait since it was read
        await take(*arguments, **options)

    monkeypatch.setattr(api.broker, "report_worker", noted)
    trio.lowlevel.add_instrument(passes)
    try:
        async with trio.open_nursery() as nursery:
            for number in range(REPORTS):
                body = msgspec.json.encode(WorkerState.of(report(number, part("q"))))
                nursery.start_soon(api.call, "PUT", f"/api/v1/workers/{worker_id(number)}", body)
    finally:
        trio.lowlevel.remove_instrument(passes)
    assert len(read_in) == len(set(read_in)) == REPORTS
    assert len(await api.broker.workers()) == REPORTS
