"""The type of answers and bodies that have one JSON value a line."""

NDJSON = "application/x-ndjson"
NDJSON_BYTES = NDJSON.encode()
