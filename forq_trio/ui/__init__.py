"""The admin UI: pages over the queue for a browser, served beside the API in the same process.

Its handlers read through the broker's readers and send commands through the broker, nothing else.
"""
