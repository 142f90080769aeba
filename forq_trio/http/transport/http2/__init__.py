"""HTTP/2 (RFC 9113): a pure core that reads and writes frames, and the tasks of a connection around it."""
