"""The load generator: conversations over many connections, their bytes and their latencies."""
