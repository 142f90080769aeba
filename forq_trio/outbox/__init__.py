"""Messages in the transaction of an application's own database, and the relay that sends them (docs/outbox.md)."""

from forq_trio.model.messages.set_aside import SetAside as SetAside
from forq_trio.outbox.errors import NoOutbox as NoOutbox
from forq_trio.outbox.errors import OutboxOlder as OutboxOlder
from forq_trio.outbox.postgres import statement as statement
from forq_trio.outbox.relay import Relay as Relay
from forq_trio.outbox.table import create_table as create_table
from forq_trio.outbox.table import delete_set_aside as delete_set_aside
from forq_trio.outbox.table import new_identity as new_identity
from forq_trio.outbox.table import retry_set_aside as retry_set_aside
from forq_trio.outbox.table import send as send
from forq_trio.outbox.table import set_aside as set_aside
