"""The server itself: processes, backups, compaction, upkeep."""
