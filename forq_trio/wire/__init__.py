"""Bodies of requests, pages and results, also as the JSON of Forq's API: declared once, for broker, server and clients.

What they are about and the engine stores, such as a message, is declared in `model`, with its names in JSON.

Types of requests forbid unknown members, types of answers ignore them (the client may be older than the server). Bounds
of numbers are for the OpenAPI document; the server checks them itself, because each has its own error code. Docstrings
are part of that document, too.
"""
