"""The parts of a dead-letter queue's workbench: its filter, its search, groups of errors, tasks in words."""
