"""Spans as OpenTelemetry's own SDK has them."""

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, format_trace_id

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = {"traceparent": f"00-{TRACE}-{SPAN}-01"}


class Spans:
    """A provider of tracers, and the spans that have ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.ended if span.name == name]

    def one(self, name: str, kind: SpanKind | None = None) -> ReadableSpan:
        """The only span of this name, and kind."""
        (found,) = [span for span in self.named(name) if kind in (None, span.kind)]
        return found


def trace_of(span: ReadableSpan) -> str:
    return format_trace_id(span.context.trace_id)


def is_below(span: ReadableSpan, other: ReadableSpan) -> bool:
    """Whether the other span is its parent."""
    return span.parent is not None and span.parent.span_id == other.context.span_id
