"""The face of the queue inside a process: validates, turns calls into commands, reads through the readers."""
