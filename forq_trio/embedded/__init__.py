"""The broker for callers outside of trio: in asyncio programs and in blocking ones (docs/embedding.md)."""
