"""HTTP/1.1 as bytes: streams of good requests, and what is refused with the status that refuses it."""

from support.transport import chunked, get, post

HEAD_11 = "GET / HTTP/1.1\r\nHost: a\r\n"

STREAMS = {
    "get": get("/a/b%20c?x=1&y=?"),
    "post": post(b'{"content":"hello"}', "Content-Type: application/json"),
    "empty body": post(b""),
    "pipelined": get("/1") + post(b"two") + chunked(b"th", b"ree") + get("/4"),
    "chunked with trailer and extension": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nTrailer: t\r\nHost: again\r\n\r\n" + get("/after"),
    "blank lines between": get("/1") + b"\r\n\r\n" + get("/2"),
    "repeated header": get("/", "Accept: a", "accept: b  "),
    "absolute form": get("http://test/p?q") + get("https://test"),
    "options star": b"OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n",
    "1.0": b"GET / HTTP/1.0\r\n\r\n",
    "1.0 kept": b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get("/2", "Connection: keep-alive"),
    "close": get("/", "Connection: close") + get("/never"),
    "upgrade declined": get("/1", "Connection: Upgrade", "Upgrade: websocket") + get("/2"),
    "upgrade with a body": post(
        b"GET / HTTP/1.1\r\n\r\n", "Connection: Upgrade", "Upgrade: h2c", "HTTP2-Settings: AA"
    )
    + get("/2"),
    "upgrade with a chunked body": chunked(b"ab", b"c", headers=("Connection: Upgrade", "Upgrade: x"))
    + get("/2"),
    "h2c": get("/", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    + get("/2", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"),
    "good, then bad": get("/1") + b"GET / HTTP/1.1\nHost: a\n\n",
    "body just right": post(b"x" * 50),
    "head just right": get("/", "A: " + "x" * (400 - len(get("/", "A: ")))),
}

REFUSED = {
    "length and coding": (f"{HEAD_11}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "coding and length": (f"{HEAD_11}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
    "two lengths": (f"{HEAD_11}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
    "length list": (f"{HEAD_11}Content-Length: 3, 3\r\n\r\nabc", 400),
    "length with sign": (f"{HEAD_11}Content-Length: +3\r\n\r\nabc", 400),
    "length overflow": (f"{HEAD_11}Content-Length: {10**30}\r\n\r\n", 400),
    "unknown coding": (f"{HEAD_11}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "coding not chunked last": (f"{HEAD_11}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400),
    "chunked twice": (
        f"{HEAD_11}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "chunked in 1.0": ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunk size hex": (f"{HEAD_11}Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", 400),
    "chunk size space": (f"{HEAD_11}Transfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n", 400),
    "chunk size overflow": (f"{HEAD_11}Transfer-Encoding: chunked\r\n\r\n{'f' * 18}\r\na\r\n0\r\n\r\n", 400),
    "chunk not ended": (f"{HEAD_11}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n", 400),
    "folded header": (f"{HEAD_11}A: b\r\n c\r\n\r\n", 400),
    "space before colon": (f"{HEAD_11}A : b\r\n\r\n", 400),
    "bare line feed": ("GET / HTTP/1.1\nHost: a\n\n", 400),
    "bare carriage return": (f"{HEAD_11}A: b\rc\r\n\r\n", 400),
    "nul in value": (f"{HEAD_11}A: b\0\r\n\r\n", 400),
    "nul in name": (f"{HEAD_11}A\0: b\r\n\r\n", 400),
    "no host": ("GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (f"{HEAD_11}Host: b\r\n\r\n", 400),
    "unknown method": ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "not http": ("\x16\x03\x01\x00\xa5", 400),
    "space in target": ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "fragment": ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "star for get": ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "other scheme": ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "connect": ("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    "http 0.9": ("GET /\r\n\r\n", 505),
    "http 2 without preface": ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    "expectation": (f"{HEAD_11}Expect: miracles\r\n\r\n", 417),
    "length over limit": (f"{HEAD_11}Content-Length: 51\r\n\r\n{'x' * 51}", 413),
    "chunks over limit": (chunked(b"x" * 30, b"x" * 21).decode(), 413),
    "too many headers": (HEAD_11 + "".join(f"A{i}: b\r\n" for i in range(6)) + "\r\n", 431),
    "too many repeated headers": (HEAD_11 + "A: b\r\n" * 6 + "\r\n", 431),
    "head too long": (get("/", "A: " + "x" * (401 - len(get("/", "A: ")))).decode(), 431),
    "target too long": (get("/" + "x" * 100).decode(), 414),
    "target too long, other parser state": (get("/1").decode() + get("/" + "x" * 200).decode(), 414),
}
