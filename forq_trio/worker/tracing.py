"""OpenTelemetry spans of a worker: `trace(app)`. Needs the extra `otel` (docs/worker-deployment.md)."""

from typing import TYPE_CHECKING

from forq_trio.model.extras import needing
from forq_trio.worker.jobs import Job, is_last
from forq_trio.worker.outcomes import Outcome, Settlement

with needing("otel", "forq_trio.worker.tracing"):
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer, use_span

    from forq_trio.model import tracing

if TYPE_CHECKING:
    from forq_trio.worker.app import Worker
    from forq_trio.worker.handlers import CallNext


def trace(worker: "Worker", provider: TracerProvider | None = None) -> None:
    """Make a span for each message that a handler gets, and give the current trace to what the worker sends.

    The attributes `traceparent` and `tracestate` of a message say the parent of its span. In a batch the span of the
    first message is the current one.
    provider: None for the global one.
    """
    tracer = get_tracer("forq_trio.worker", tracer_provider=provider)

    @worker.middleware
    async def spans_around(job: Job, call_next: "CallNext") -> object:
        run = job.lease.run
        assert run is not None
        spans = [
            tracer.start_span(
                f"process {job.queue}", tracing.context_in(each.attributes), SpanKind.CONSUMER, _about(each)
            )
            for each in run.jobs
        ]
        result: object = None
        interrupted = True
        try:
            with use_span(spans[0], record_exception=False, set_status_on_exception=False):
                result = await call_next()
            interrupted = False
        except Exception as error:
            result, interrupted = error, False
            raise
        finally:
            handler = worker.handlers[job.queue]
            results = handler.returned_for_each(result, len(spans))
            for span, each, one in zip(spans, run.jobs, results, strict=True):
                settlement = None if interrupted or each.lost else handler.settlement(one, each)
                _end(span, one, each, settlement)
        return result

    worker.attributes(current_trace)


def current_trace() -> dict[str, str]:
    """The attributes that continue the current trace, `traceparent` and `tracestate`; none outside of a span."""
    return tracing.carried()


def _about(job: Job) -> dict[str, str | int]:
    return {
        **tracing.about(job.queue, tracing.PROCESS),
        "messaging.message.id": job.id,
        "forq.attempt": job.attempt,
    }


def _end(span: Span, result: object, job: Job, settlement: Settlement | None) -> None:
    """End a span with its message's outcome. settlement: None if the handler was cancelled, or the lease lost."""
    if settlement is None:
        settlement = Settlement("interrupted", reason="the handler was cancelled, or the lease was lost")
    span.set_attribute("forq.outcome", "dead" if is_last(settlement, job) else settlement.what)
    if settlement.what in ("nack", "interrupted"):
        span.set_status(Status(StatusCode.ERROR, settlement.reason))
    if isinstance(result, Exception) and not isinstance(result, Outcome):
        span.record_exception(result)
    span.end()
