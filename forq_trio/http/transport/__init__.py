"""From sockets to requests and back: HTTP/1.1 and HTTP/2. Knows no routes."""
