"""One suite for every storage engine: what `forq_trio.storage.engine` promises, a file per operation."""
