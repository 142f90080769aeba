"""What engines on SQL do for each kind of command: one operation a file, functions over a Transaction.

A file with operations is imported here: without it, an operation is missing in the table.
"""

from forq_trio.storage.relational.operations import apps as apps
from forq_trio.storage.relational.operations import consumers as consumers
from forq_trio.storage.relational.operations import due as due
from forq_trio.storage.relational.operations import logs as logs
from forq_trio.storage.relational.operations import moved_pages as moved_pages
from forq_trio.storage.relational.operations import moves as moves
from forq_trio.storage.relational.operations import offers as offers
from forq_trio.storage.relational.operations import outboxes as outboxes
from forq_trio.storage.relational.operations import publishing as publishing
from forq_trio.storage.relational.operations import queues as queues
from forq_trio.storage.relational.operations import redrives as redrives
from forq_trio.storage.relational.operations import schedules as schedules
from forq_trio.storage.relational.operations import send as send
from forq_trio.storage.relational.operations import sessions as sessions
from forq_trio.storage.relational.operations import settle as settle
from forq_trio.storage.relational.operations import tokens as tokens
from forq_trio.storage.relational.operations.table import OPERATIONS as OPERATIONS
from forq_trio.storage.relational.operations.table import Operation as Operation
from forq_trio.storage.relational.operations.table import Operations as Operations
from forq_trio.storage.relational.operations.table import operation_on_each as operation_on_each
