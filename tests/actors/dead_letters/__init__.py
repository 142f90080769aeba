"""The dead-letter workbench: through the broker, over HTTP, and from the command line."""
