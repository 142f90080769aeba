"""HTTP/2 as a server speaks it (RFC 9113), without I/O: bytes in, whole requests and bytes out.

`feed` takes what arrived, `parse` works through one portion of it: HTTP2_PORTION_FRAMES_MAX frames, or fewer if their
headers cost more, so that one client with many frames does not delay others. Afterwards
- `complete` has the streams whose requests are whole, for the caller to empty and to `answer`,
- `output` has the bytes to send,
- `deadline` is no later than the moment at which `end_overdue` has something to do.
A request is admitted when its head ends. One without a right key, or that cannot be served, is answered at once and
takes no memory. An error of one stream resets it; any other raises ConnectionFault, after which only `fail` may be
called. All that a client can use is bounded: open streams and running handlers, bytes of a header block, bodies
(Bodies), answers (AnswerBudget), and frames that are not part of a request (FrameAllowance).
"""

from collections.abc import Callable
from math import inf

from forq_trio.http.message import Response
from forq_trio.http.transport.http2 import frames
from forq_trio.http.transport.http2.block_encoder import CONTINUE_BLOCK
from forq_trio.http.transport.http2.block_reader import Block, BlockReader
from forq_trio.http.transport.http2.bodies import Bodies
from forq_trio.http.transport.http2.connection_state import ClientSettings, ConnectionEnd, Deadlines
from forq_trio.http.transport.http2.frame_allowance import FrameAllowance
from forq_trio.http.transport.http2.frames import ConnectionFault, StreamFault
from forq_trio.http.transport.http2.output import Output
from forq_trio.http.transport.http2.request_head import RequestHead, check_trailers, read_head
from forq_trio.http.transport.http2.stream import Http2Stream, Streams
from forq_trio.http.transport.services import Services
from forq_trio.model import limits

# What a header block counts for, in frames: it is decoded, and may start a request.
_FRAMES_PER_BLOCK, _BLOCK_BYTES_PER_FRAME, _BLOCK_FIELDS_PER_FRAME = 3, 64, 4


class Http2Protocol:
    """One connection. now: trio's clock at this moment. The client's preface has been read."""

    def __init__(self, services: Services, client: str, now: float) -> None:
        config = services.config
        self.streams = Streams()
        self.output = Output(self.streams, services.answer_budget, services.block_encoder)
        self.complete: list[Http2Stream] = []
        self._services = services
        self._allowance = FrameAllowance(now)
        self._blocks = BlockReader()
        self._client = ClientSettings()
        self._deadlines = Deadlines(now, config.idle_seconds)
        self._end = ConnectionEnd()
        self._now = now
        self._portion_frames_left = 0
        self._data = b""  # bytes that were fed; those from `_offset` on are not parsed yet
        self._offset = 0
        self._running = 0  # handlers
        ours = {
            frames.MAX_CONCURRENT_STREAMS: limits.HTTP2_STREAMS_MAX,
            frames.INITIAL_WINDOW_SIZE: limits.HTTP2_STREAM_WINDOW_BYTES,
            frames.MAX_HEADER_LIST_SIZE: config.header_bytes_max,
        }
        self.output.add(frames.settings_frame(ours))
        self.bodies = Bodies(services, client, self.output)

    # Called by the connection.

    @property
    def deadline(self) -> float:
        """No later than the moment at which `end_overdue` has something to do."""
        return self._deadlines.next

    @property
    def is_closing(self) -> bool:
        """Whether only running requests are served, and no new ones."""
        return self._end.is_near

    @property
    def is_idle(self) -> bool:
        """Whether all requests are answered."""
        return not self.streams.open and not self._running

    @property
    def is_done(self) -> bool:
        """Whether all requests are answered and no more will come."""
        return self.is_closing and self.is_idle

    def feed(self, data: bytes) -> None:
        """Take the bytes that arrived next."""
        self._data = self._data[self._offset :] + data if self._offset < len(self._data) else data
        self._offset = 0

    def parse(self, now: float, *, full_portion: bool) -> bool:
        """Work through one portion of what was fed; returns whether whole frames are left. Raises ConnectionFault.

        full_portion: only one connection may do so in each pass of the loop. Otherwise the portion is small, and ends
        before a large header block.
        """
        self._now = now
        data, offset = self._data, self._offset
        self._portion_frames_left = (
            limits.HTTP2_PORTION_FRAMES_MAX if full_portion else limits.HTTP2_FREE_FRAMES_MAX
        )
        block_bytes_max = frames.FRAME_BYTES_MAX if full_portion else limits.HTTP2_FREE_BLOCK_BYTES_MAX
        begun = offset
        while len(data) - offset >= frames.FRAME_HEADER_BYTES:
            length, kind, flags, stream_id = frames.read_frame_header(data, offset)
            if length > frames.FRAME_BYTES_MAX:
                raise ConnectionFault(frames.FRAME_SIZE_ERROR)
            end = offset + frames.FRAME_HEADER_BYTES + length
            if end > len(data):
                break
            is_large = length > block_bytes_max and kind in (frames.HEADERS, frames.CONTINUATION)
            if self._portion_frames_left <= 0 or is_large:
                self._offset = offset
                return True
            self._portion_frames_left -= 1
            self._read_frame(kind, flags, stream_id, data[offset + frames.FRAME_HEADER_BYTES : end])
            offset = end
        self._data, self._offset = data[offset:], 0  # frees the bytes that were read
        self._deadlines.time_headers(
            self._blocks,
            data[offset + 3] if len(data) - offset > 3 else frames.HEADERS,
            len(data) - offset,
            advanced=offset > begun,
            at=now + self._services.config.header_seconds,
        )
        return False

    def answer(self, stream: Http2Stream, response: Response, now: float) -> None:
        """Answer a request that was in `complete`. Raises ValueError if a header contains a line break."""
        if stream.is_lost:
            if response.on_unsent is not None:
                response.on_unsent()
            return
        self._allowance.earn(limits.HTTP2_ALLOWANCE_FRAMES_PER_ANSWER)
        self._answer(stream, response, now)

    def end_handler(self, stream: Http2Stream, now: float) -> None:
        """Note that the handler of a request that was in `complete` has ended, with or without an answer."""
        self._running -= 1
        self.bodies.release(stream)
        self._deadlines.note_end_of_handler(now)

    def take(self) -> bytes:
        """The bytes to send next; see `Output.take`."""
        if self._end.when_idle and self.is_idle and self.streams.highest:
            self.end()
        made = self.output.data_frames
        data = self.output.take()
        self._allowance.earn(limits.HTTP2_ALLOWANCE_FRAMES_PER_DATA_FRAME * (self.output.data_frames - made))
        return data

    def reset(self, stream: Http2Stream, code: int) -> None:
        """End a stream whose answer cannot be sent."""
        self._drop(stream, by_reset=True)
        self.output.add(frames.reset_frame(stream.id, code))

    def end_when_idle(self) -> None:
        """Serve requests until none is unanswered, but at least one, and then no more."""
        self._end.when_idle = True

    def end(self) -> None:
        """Serve the running requests and no new ones."""
        if not self._end.is_near:
            self._end.is_near = True
            self._goaway(frames.NO_ERROR)

    def end_stalled(self) -> None:
        """Give up incomplete requests of which nothing came since the last call; clients may send them elsewhere."""
        for stream in list(self.streams.open.values()):
            if stream.answer.is_made:
                self._reset_made(stream)
            elif stream.stalls and not stream.is_whole and not stream.answer.is_given:
                self.reset(stream, frames.REFUSED_STREAM)
            stream.stalls = True

    def fail(self, code: int) -> None:
        """End at once, because the client broke a rule; answers that were made to their end are still sent."""
        self._drop_open()
        for stream in self.complete:
            self.end_handler(stream, self._now)
        self.complete.clear()
        self._end.is_near = True
        self._goaway(code)

    def lose_all(self) -> None:
        """Give up all answers, because the client is gone."""
        self._drop_open()
        self.output.lose_all_unsent()

    def end_overdue(self, now: float) -> bool:
        """End what has taken too long, and set the next `deadline`; returns True to have the connection cut."""
        self._now = now
        deadlines = self._deadlines
        if now >= deadlines.header:
            raise ConnectionFault(frames.ENHANCE_YOUR_CALM)
        deadlines.next = deadlines.header
        for stream in list(self.streams.open.values()):
            if now < stream.deadline:
                deadlines.add(stream.deadline)
            elif stream.answer.is_made:
                self._reset_made(stream)
            elif not stream.answer.is_given:
                self._refuse(stream, 408)
            elif self.output.window > 0 and not self.output.unsent_bytes:
                self.reset(stream, frames.CANCEL)
            else:
                return True
        if self.is_idle and deadlines.note_idle(now):
            self.end()
        return False

    def _reset_made(self, stream: Http2Stream) -> None:
        self.streams.close(stream.id, by_reset=True)
        self.output.add(frames.reset_frame(stream.id, frames.NO_ERROR))

    # Answers.

    def _answer(self, stream: Http2Stream, response: Response, now: float) -> None:
        services, head = self._services, stream.head
        response = services.answer_budget.admit(
            *(stream.holder, head.method, head.path, head.headers),
            *(response, services.refuse, self.output.answer_bytes),
        )
        try:
            self.output.answer(stream, response)
        except ValueError:
            services.answer_budget.release(stream.holder, len(response.body))
            if response.on_unsent is not None:
                response.on_unsent()
            raise
        stream.deadline = now + self._services.config.send_seconds
        self._deadlines.add(stream.deadline)

    def _refuse(self, stream: Http2Stream, status: int) -> None:
        """Refuse a request with an answer of the transport's own."""
        head = stream.head
        self._refuse_with(stream, self._services.refuse(status, head.method, head.path, head.headers))

    def _refuse_with(self, stream: Http2Stream, response: Response) -> None:
        """Answer before the request is whole. The rest of it is read for `linger_seconds` and thrown away, because many
        clients do not see an answer that comes with a reset.
        """
        self.bodies.release(stream)
        self._answer(stream, response, self._now)
        stream.head.path = stream.head.query = ""
        if not stream.is_whole:
            stream.deadline = self._now + self._services.config.linger_seconds
            self._deadlines.add(stream.deadline)

    def _goaway(self, code: int) -> None:
        self.output.add(self._end.goaway(self.streams.highest, code))

    def _drop_open(self) -> None:
        for stream in list(self.streams.open.values()):
            self._drop(stream, by_reset=True)

    def _drop(self, stream: Http2Stream, *, by_reset: bool) -> None:
        """End a stream without its whole answer."""
        self.streams.close(stream.id, by_reset=by_reset)
        if not stream.is_whole:
            self.bodies.release(stream)
        self.output.lose(stream)

    # Frames.

    def _read_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if self._blocks.open_stream and (
            kind != frames.CONTINUATION or stream_id != self._blocks.open_stream
        ):
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        if not self._client.are_known and (kind != frames.SETTINGS or flags & frames.ACK):
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        if kind >= len(_READERS):
            self._allowance.spend(self._now)
            return
        try:
            _READERS[kind](self, flags, stream_id, payload)
        except StreamFault as fault:
            self._allowance.spend(self._now)
            stream = self.streams.open.get(stream_id)
            if stream is not None:
                self.reset(stream, fault.code)
            else:
                self.streams.close(stream_id, by_reset=True)
                self.output.add(frames.reset_frame(stream_id, fault.code))

    def _read_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id:
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        block = self._blocks.start(flags, stream_id, payload)
        self._portion_frames_left -= _FRAMES_PER_BLOCK + len(payload) // _BLOCK_BYTES_PER_FRAME
        if block is not None:
            self._end_block(block)

    def _read_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._allowance.spend(self._now)
        if not self._blocks.open_stream:
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        block = self._blocks.go_on(flags, payload)
        self._portion_frames_left -= len(payload) // _BLOCK_BYTES_PER_FRAME
        if block is not None:
            self._end_block(block)

    def _end_block(self, block: Block) -> None:
        """A header block is whole: a new request, or the trailers of one."""
        self._portion_frames_left -= len(block.fields) // _BLOCK_FIELDS_PER_FRAME
        streams, stream_id = self.streams, block.stream_id
        stream = streams.open.get(stream_id)
        if stream is not None:
            if stream.is_whole:
                raise StreamFault(frames.STREAM_CLOSED)
            if not block.is_last:
                raise StreamFault(frames.PROTOCOL_ERROR)
            check_trailers(block.fields)
            self._end_request(stream)
        elif not streams.is_unopened(stream_id):
            self._read_on_closed(stream_id)
        elif not stream_id % 2:
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        else:
            streams.highest = stream_id
            if block.is_circular:
                raise StreamFault(frames.PROTOCOL_ERROR)
            if self.is_closing or max(len(streams.open), self._running) >= limits.HTTP2_STREAMS_MAX:
                raise StreamFault(frames.REFUSED_STREAM)
            self._open(stream_id, read_head(block.fields, self._services.config), block.is_last)

    def _open(self, stream_id: int, head: RequestHead, is_whole: bool) -> None:
        windows = limits.HTTP2_STREAM_WINDOW_BYTES, self._client.window
        stream = Http2Stream(stream_id, head, self.bodies.holder, *windows, self._services.poller.end_wait)
        self.streams.open[stream_id] = stream
        refused = self.bodies.admit(stream)
        if refused is not None:
            stream.is_whole = is_whole
            has_key = head.refused or stream.holder is not self.bodies.holder
            self._allowance.spend(self._now, 1 if has_key else limits.HTTP2_ALLOWANCE_FRAMES_PER_KEYLESS)
            self._refuse_with(stream, refused)
        elif is_whole:
            self._end_request(stream)
        else:
            stream.deadline = self._now + self._services.config.body_seconds
            self._deadlines.add(stream.deadline)
            if head.asks_continue:
                self.output.add_headers(stream_id, CONTINUE_BLOCK, is_last=False)

    def _end_request(self, stream: Http2Stream) -> None:
        if stream.answer.is_given:  # it was refused
            stream.is_whole = True
            if stream.answer.is_made:
                self.streams.close(stream.id, by_reset=False)
            return
        if stream.head.body_bytes not in (None, len(stream.body)):
            raise StreamFault(frames.PROTOCOL_ERROR)
        stream.is_whole = True
        stream.deadline = inf
        self._running += 1
        self.complete.append(stream)

    def _read_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id:
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        self.bodies.count(len(payload))
        stream = self.streams.open.get(stream_id)
        if stream is None:
            self._read_on_closed(stream_id)
            return
        if stream.is_whole:
            raise StreamFault(frames.STREAM_CLOSED)
        stream.receive_window -= len(payload)
        stream.stalls = False
        content = frames.without_padding(payload, flags)
        is_last = bool(flags & frames.END_STREAM)
        if not content and not is_last:
            self._allowance.spend(self._now)
        if not stream.answer.is_given and content:
            refused = self.bodies.add(stream, content)
            if refused:
                self._refuse(stream, refused)
        if is_last:
            self._end_request(stream)
        else:
            self.bodies.open_window(stream)

    def _read_on_closed(self, stream_id: int) -> None:
        """HEADERS or DATA of a stream that is not open: they were on their way when we reset it, or are a mistake."""
        self._allowance.spend(self._now)
        if self.streams.is_unopened(stream_id):
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        if not self.streams.was_reset(stream_id):
            known = self.streams.was_closed(stream_id)
            raise ConnectionFault(frames.STREAM_CLOSED if known else frames.PROTOCOL_ERROR)

    def _read_priority(self, flags: int, stream_id: int, payload: bytes) -> None:
        """Check a priority, which is not used: priorities are deprecated (RFC 9113 section 5.3.2)."""
        self._allowance.spend(self._now)
        if not stream_id:
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        # A stream that is not open cannot be reset.
        fault = StreamFault if stream_id in self.streams.open else ConnectionFault
        if len(payload) != frames.PRIORITY_BYTES:
            raise fault(frames.FRAME_SIZE_ERROR)
        if frames.depends_on(payload) == stream_id:
            raise fault(frames.PROTOCOL_ERROR)

    def _read_reset(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._allowance.spend(self._now)
        if len(payload) != frames.NUMBER_BYTES:
            raise ConnectionFault(frames.FRAME_SIZE_ERROR)
        if self.streams.is_unopened(stream_id):
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        stream = self.streams.open.get(stream_id)
        if stream is not None:
            self._drop(stream, by_reset=False)
        else:
            self.output.lose_unsent(stream_id)

    def _read_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._allowance.spend(self._now)
        if stream_id:
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        if flags & frames.ACK and payload:
            raise ConnectionFault(frames.FRAME_SIZE_ERROR)
        self._client.are_known = True
        if flags & frames.ACK:
            return
        settings = frames.read_settings(payload)
        if frames.HEADER_TABLE_SIZE in settings:
            self.output.announce_no_table()
        self._set_initial_window(settings.get(frames.INITIAL_WINDOW_SIZE, self._client.window))
        self.output.add(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _set_initial_window(self, window: int) -> None:
        """Change the windows of open streams by the difference, too (RFC 9113 section 6.9.2)."""
        change, self._client.window = window - self._client.window, window
        if not change:
            return
        for stream in self.streams.open.values():
            stream.answer.window += change
            if stream.answer.window > frames.WINDOW_BYTES_MAX:
                raise ConnectionFault(frames.FLOW_CONTROL_ERROR)
            self.output.resume(stream)

    def _read_push_promise(self, flags: int, stream_id: int, payload: bytes) -> None:
        raise ConnectionFault(frames.PROTOCOL_ERROR)

    def _read_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._allowance.spend(self._now)
        if stream_id:
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        if len(payload) != frames.PING_BYTES:
            raise ConnectionFault(frames.FRAME_SIZE_ERROR)
        if not flags & frames.ACK:
            self.output.add(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _read_goaway(self, flags: int, stream_id: int, payload: bytes) -> None:
        """The client opens no more streams: when those that are open are answered, the connection ends."""
        self._allowance.spend(self._now)
        if stream_id:
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        if len(payload) < frames.GOAWAY_BYTES_MIN:
            raise ConnectionFault(frames.FRAME_SIZE_ERROR)
        self.end()

    def _read_window_update(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._allowance.spend(self._now)
        if len(payload) != frames.NUMBER_BYTES:
            raise ConnectionFault(frames.FRAME_SIZE_ERROR)
        more = frames.read_number(payload)[0] & frames.WINDOW_BYTES_MAX
        if not stream_id:
            self.output.window += more
            if not more:
                raise ConnectionFault(frames.PROTOCOL_ERROR)
            if self.output.window > frames.WINDOW_BYTES_MAX:
                raise ConnectionFault(frames.FLOW_CONTROL_ERROR)
            return
        if self.streams.is_unopened(stream_id):
            raise ConnectionFault(frames.PROTOCOL_ERROR)
        stream = self.streams.open.get(stream_id)
        if stream is None:
            return
        if not more:
            raise StreamFault(frames.PROTOCOL_ERROR)
        stream.answer.window += more
        if stream.answer.window > frames.WINDOW_BYTES_MAX:
            raise StreamFault(frames.FLOW_CONTROL_ERROR)
        self.output.resume(stream)


# Readers of frames; the index is the frame's type.
_READERS: tuple[Callable[[Http2Protocol, int, int, bytes], None], ...] = (
    Http2Protocol._read_data,
    Http2Protocol._read_headers,
    Http2Protocol._read_priority,
    Http2Protocol._read_reset,
    Http2Protocol._read_settings,
    Http2Protocol._read_push_promise,
    Http2Protocol._read_ping,
    Http2Protocol._read_goaway,
    Http2Protocol._read_window_update,
    Http2Protocol._read_continuation,
)
