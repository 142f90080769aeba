"""How the regions and accounts of Amazon are written: patterns for settings, signatures and names of queues."""

REGION = "[a-z0-9-]{1,32}"
ACCOUNT = "[0-9]{12}"
