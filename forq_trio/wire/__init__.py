"""What callers give and get, also as the JSON of Forq's API: declared once, for the broker, the server and the clients.

Types of requests forbid unknown members, types of answers ignore them (the client may be older than the server). Bounds
of numbers are for the OpenAPI document; the server checks them itself, because each has its own error code. Docstrings
are part of that document, too.
"""
