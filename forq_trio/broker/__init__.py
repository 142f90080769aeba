"""The broker: validates calls, turns them into commands for the writer, reads through the readers."""
