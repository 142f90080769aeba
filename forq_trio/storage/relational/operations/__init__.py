"""What engines on SQL do for each kind of command: one operation a file, as functions over a Transaction.

Every file of this folder is imported here, so that its operations are in the table.
"""

from importlib import import_module
from pkgutil import iter_modules

from forq_trio.storage.relational.operations.table import OPERATIONS as OPERATIONS
from forq_trio.storage.relational.operations.table import Operation as Operation
from forq_trio.storage.relational.operations.table import Operations as Operations
from forq_trio.storage.relational.operations.table import operation_on_each as operation_on_each

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
