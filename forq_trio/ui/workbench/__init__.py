"""What the workbench of a dead-letter queue is made of: its filter, its search, groups of errors, tasks in words."""
