"""On PostgreSQL a message with text that it cannot store fails alone, as others that are not valid do."""

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine

from .harness import open_api


async def test_of_a_batch(database: str) -> None:
    async with open_api(open_engine(database, EngineSettings(), "normal")) as api:
        bodies = ("before", "a\0b", "after")
        sent = await api.ok(
            "send_batch", {"messages": [{"queue_name": "q", "message_body": each} for each in bodies]}
        )
        assert [each["index"] for each in sent["successful"]] == [0, 2]
        (failed,) = sent["failed"]
        assert failed["index"] == 1
        assert "U+0000" in failed["error"]["message"]
        assert [*await api.texts(), *await api.texts()] == ["before", "after"]
