"""The reference model: the engine of plain dicts that every other engine is compared with. For tests.

A file with operations is imported here: without it, an operation is missing in the table.
"""

from oracle import administration as administration
from oracle import consumers as consumers
from oracle import due as due
from oracle import events as events
from oracle import history as history
from oracle import message_batches as message_batches
from oracle import offers as offers
from oracle import outboxes as outboxes
from oracle import publishing as publishing
from oracle import redrives as redrives
from oracle import schedules as schedules
from oracle import send as send
from oracle import sessions as sessions
from oracle import settle as settle
