"""What one connection sends: control frames at once, answers as far as the client's windows allow. No I/O.

The bytes are numbered from the start of the connection. An answer is sent when the socket has taken the last byte of
its last frame. DATA frames are made only when the bytes before them are sent, so a long answer is in memory once, and
at most SEND_PORTION_BYTES of each connection twice. Waiting answers are sent round-robin, one frame each.
"""

from collections import deque

from forq_trio.http.message import Response
from forq_trio.http.transport.answer_budget import AnswerBudget
from forq_trio.http.transport.http2.block_encoder import NO_TABLE, BlockEncoder
from forq_trio.http.transport.http2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_BYTES_MAX,
    HEADERS,
    WINDOW_BYTES_DEFAULT,
    frame,
    frame_header,
)
from forq_trio.http.transport.http2.stream import Http2Stream, Streams
from forq_trio.http.transport.response_bytes import WITHOUT_BODY
from forq_trio.model import limits


class Output:
    """The output of one connection.

    window: how many more bytes of DATA the client accepts on the whole connection. data_frames: how many were made.
    answer_bytes: the size of the bodies of answers that are not sent whole yet.
    """

    __slots__ = (
        "_announces_no_table",
        "_answer_budget",
        "_block_encoder",
        "_frames",
        "_made_bytes",
        "_sent_bytes",
        "_streams",
        "_unsent",
        "_waiting",
        "answer_bytes",
        "data_frames",
        "window",
    )

    def __init__(self, streams: Streams, answer_budget: AnswerBudget, block_encoder: BlockEncoder) -> None:
        self.window = WINDOW_BYTES_DEFAULT
        self.data_frames = 0
        self.answer_bytes = 0
        self._streams = streams
        self._answer_budget = answer_budget
        self._block_encoder = block_encoder
        self._frames: list[bytes | memoryview] = []
        self._made_bytes = 0
        self._sent_bytes = 0
        # Streams whose answers have bytes left that their own windows allow, round-robin.
        self._waiting: deque[Http2Stream] = deque()
        # Answers whose last frame was made and not sent, each with the number of its last byte.
        self._unsent: deque[tuple[int, Http2Stream]] = deque()
        self._announces_no_table = False

    @property
    def unsent_bytes(self) -> int:
        """How many bytes were made that the socket has not taken yet."""
        return self._made_bytes - self._sent_bytes

    @property
    def has_undoable(self) -> bool:
        """Whether the last bytes of an answer are about to be sent, and its request can still be undone."""
        return any(stream.answer.on_unsent is not None for _, stream in self._unsent)

    def add(self, data: bytes | memoryview) -> None:
        """Send these frames after all that was made before."""
        self._frames.append(data)
        self._made_bytes += len(data)

    def announce_no_table(self) -> None:
        """Tell the client, which has changed the size of our header blocks' table, that we use none."""
        self._announces_no_table = True

    def answer(self, stream: Http2Stream, response: Response) -> None:
        """Send the headers now and the body as the windows allow. The answer has been admitted to the budget.

        Raises ValueError if a header contains a line break.
        """
        block = self._block_encoder.encode(response)
        stream.answer.begin(response)
        self.answer_bytes += stream.answer.bytes
        is_last = not response.body or stream.head.method == "HEAD" or response.status in WITHOUT_BODY
        self.add_headers(stream.id, block, is_last=is_last)
        if is_last:
            self._end(stream)
        else:
            stream.answer.rest = memoryview(response.body)
            self.resume(stream)

    def add_headers(self, stream_id: int, block: bytes, *, is_last: bool) -> None:
        """Send a header block, in as many frames as it takes. is_last: nothing follows it on its stream."""
        if self._announces_no_table:
            self._announces_no_table = False
            block = NO_TABLE + block
        kind, flags = HEADERS, END_STREAM if is_last else 0
        while len(block) > FRAME_BYTES_MAX:
            self.add(frame(kind, flags, stream_id, block[:FRAME_BYTES_MAX]))
            kind, flags, block = CONTINUATION, 0, block[FRAME_BYTES_MAX:]
        self.add(frame(kind, flags | END_HEADERS, stream_id, block))

    def resume(self, stream: Http2Stream) -> None:
        """Put a stream in line to send, if it can: it has an answer, or its window has grown."""
        answer = stream.answer
        if answer.rest and answer.window > 0 and not answer.is_waiting:
            answer.is_waiting = True
            self._waiting.append(stream)

    def take(self) -> bytes:
        """The bytes to send next; `note_sent` is told how many of them the socket took before this is called again."""
        waiting = self._waiting
        while waiting and self.window > 0 and self.unsent_bytes < limits.SEND_PORTION_BYTES:
            stream = waiting.popleft()
            answer = stream.answer
            answer.is_waiting = False
            length = min(len(answer.rest), answer.window, self.window, FRAME_BYTES_MAX)
            if length <= 0:  # the answer was lost meanwhile, or the window has shrunk
                continue
            portion, answer.rest = answer.rest[:length], answer.rest[length:]
            answer.window -= length
            self.window -= length
            flags = 0 if answer.rest else END_STREAM
            self.add(frame_header(DATA, flags, stream.id, length))
            self.add(portion)
            self.data_frames += 1
            if answer.rest:
                self.resume(stream)
            else:
                self._end(stream)
        data = b"".join(self._frames)
        self._frames.clear()
        return data

    def note_sent(self, sent_bytes: int) -> None:
        """The socket has taken this many bytes more."""
        self._sent_bytes += sent_bytes
        while self._unsent and self._unsent[0][0] <= self._sent_bytes:
            _, stream = self._unsent.popleft()
            stream.answer.on_unsent = None
            self._uncount(stream)

    def lose(self, stream: Http2Stream) -> None:
        """Give up an answer, because the client will not get all of it."""
        self._uncount(stream)
        stream.lose()

    def lose_unsent(self, stream_id: int) -> None:
        """Give up the answer of a stream that the client has reset, if its frames are made but not sent yet."""
        for _, stream in self._unsent:
            if stream.id == stream_id:
                self.lose(stream)

    def lose_all_unsent(self) -> None:
        """Give up the answers whose frames are made but not sent, because the client is gone."""
        for _, stream in self._unsent:
            self.lose(stream)
        self._unsent.clear()

    def _end(self, stream: Http2Stream) -> None:
        """The last frame of an answer was made: end the stream, if the client has ended its side, too."""
        stream.answer.is_made = True
        if stream.is_whole:
            self._streams.close(stream.id, by_reset=False)
        self._unsent.append((self._made_bytes, stream))

    def _uncount(self, stream: Http2Stream) -> None:
        self._answer_budget.release(stream.holder, stream.answer.bytes)
        self.answer_bytes -= stream.answer.bytes
        stream.answer.bytes = 0
