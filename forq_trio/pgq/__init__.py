"""Queues in tables of PostgreSQL, in the layout of pgq: no server, and Go's pgq beside it (docs/pgq.md)."""

from forq_trio.model.extras import needing

with needing("postgres", "forq_trio.pgq"):
    from forq_trio.pgq.consumer import Consumer as Consumer
    from forq_trio.pgq.layout import check_table as check_table
    from forq_trio.pgq.layout import create_table as create_table
    from forq_trio.pgq.layout import drop_table as drop_table
    from forq_trio.pgq.publisher import Publisher as Publisher
    from forq_trio.pgq.publisher import publish as publish
    from forq_trio.pgq.publisher import publish_async as publish_async
from forq_trio.pgq.claims import InvalidRow as InvalidRow
from forq_trio.pgq.errors import DatabaseRefused as DatabaseRefused
from forq_trio.pgq.errors import InvalidDatabaseUrl as InvalidDatabaseUrl
from forq_trio.pgq.errors import InvalidPayload as InvalidPayload
from forq_trio.pgq.errors import InvalidTableName as InvalidTableName
from forq_trio.pgq.errors import NoTable as NoTable
from forq_trio.pgq.errors import WrongTable as WrongTable
from forq_trio.pgq.messages import Injector as Injector
from forq_trio.pgq.messages import Message as Message
