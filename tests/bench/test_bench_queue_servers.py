"""What the load generator reads from Redis and beanstalkd, byte by byte, and what it says to them."""

import pytest

from bench.load.generator import Address, Series
from bench.load.wire import Response
from bench.targets.queue_servers import Beanstalkd, Redis

ANSWERS = [
    (Redis, b":17\r\n", Response(200, b"17")),
    (Redis, b"$5\r\nhe\r\no\r\n", Response(200, b"he\r\no")),
    (Redis, b"$-1\r\n", Response(204, b"")),
    (Redis, b"-ERR no\r\n", Response(500, b"ERR no")),
    (Beanstalkd, b"INSERTED 3\r\n", Response(200, b"")),
    (Beanstalkd, b"RESERVED 3 5\r\nhe\r\no\r\n", Response(200, b"3")),
    (Beanstalkd, b"DELETED\r\n", Response(200, b"")),
    (Beanstalkd, b"OUT_OF_MEMORY\r\n", Response(500, b"OUT_OF_MEMORY")),
]


@pytest.mark.parametrize(("kind", "data", "answer"), ANSWERS)
def test_an_answer_ends_where_it_ends(kind, data, answer):
    for length in range(len(data)):
        assert kind.scan(data[:length]) is None
    assert kind.scan(data) == (answer, len(data))
    assert kind.scan(data + b"more") == (answer, len(data))


@pytest.mark.parametrize(
    ("kind", "answers", "said"),
    [
        (
            Redis,
            [b":1\r\n", b"$2\r\nhi\r\n"],
            [
                b"*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n$2\r\nhi\r\n",
                b"*5\r\n$5\r\nLMOVE\r\n$1\r\nq\r\n$7\r\nq-taken\r\n$5\r\nRIGHT\r\n$4\r\nLEFT\r\n",
                b"*4\r\n$4\r\nLREM\r\n$7\r\nq-taken\r\n$1\r\n1\r\n$2\r\nhi\r\n",
            ],
        ),
        (
            Beanstalkd,
            [b"USING q\r\n", b"WATCHING 2\r\n", b"INSERTED 7\r\n", b"RESERVED 7 2\r\nhi\r\n"],
            [b"use q\r\n", b"watch q\r\n", b"put 0 0 300 2\r\nhi\r\n", b"reserve\r\n", b"delete 7\r\n"],
        ),
    ],
)
def test_a_message_is_sent_taken_and_settled(kind, answers, said):
    server = kind(Address("127.0.0.1", 1), "1.0")
    steps = [Series("send"), Series("take"), Series("settle")]
    conversation = server.cycling("q", b"hi", steps)
    requests = [next(conversation)]
    requests += [conversation.send(kind.scan(answer)[0]) for answer in answers]
    assert [request.payload for request in requests] == said
    assert [request.series for request in requests[-3:]] == steps
