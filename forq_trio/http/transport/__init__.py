"""From sockets to requests and back: HTTP/1.1 of our own, HTTP/2 through Hypercorn. Knows no routes."""
