"""Clients of a forq-trio server over HTTP: `ForqClient` blocks, `AsyncForqClient` is for trio and asyncio.

Of the rest of forq-trio this package imports only `forq_trio.model`: plain values. Programs import
its names from `forq_trio`.
"""
