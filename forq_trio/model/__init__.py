"""The nouns and verbs of the queue as plain values, by topic: they import nothing of the package but each other.

A topic, such as `queues`, has in modules of these names what there is of it:

- `types` and others: what the engines store and callers get, such as a message, with its names in JSON.
- `commands`: what the writer actor executes. `forq_trio.model.commands` has all of them.
- `limits`: its bounds. `forq_trio.model.limits` has all of them, and the relations between them.
- `errors`: its errors. `forq_trio.model.errors` has all of them.
- `bodies`: queries, and bodies of requests, pages and results, as callers use them and as the JSON of Forq's API. Types
  of requests forbid unknown members, types of answers ignore them (the client may be older than the server). Bounds
  of numbers are for the OpenAPI document; the server checks them itself, because each has its own error code.
  Docstrings are part of that document, too.
- `endpoints`: the endpoints of Forq's API, each declared once: routes, documentation and the clients follow.
- `methods`: the methods of `Broker` and of the clients, each declared once: its name, parameters, types and meaning.
  Broker and clients implement them, with the same signature and without a text of their own: editors and `help` show
  the one here, and script/blocking_client.py puts it into the blocking client. Errors besides those that a method names
  are the ServiceErrors; a client also raises those of its class.
"""
