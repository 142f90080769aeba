"""SQLite files as wholes: opened, recognised, migrated, copied, checked; and how their disk fails."""
