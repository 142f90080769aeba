"""From sockets to requests and back: HTTP/1.1 and HTTP/2 of our own. Knows no routes."""
