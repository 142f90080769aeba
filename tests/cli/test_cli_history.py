"""`forq history show` and `requeue`."""

from forq_trio import ForqClient

from .conftest import Forq


def test_a_finished_message_is_shown_with_its_key(connected: Forq, client: ForqClient, queue: str):
    keyed = client.offer(queue, "customer/4", "x", kind="mail")
    client.drop_key(queue, "customer/4", "mail")
    plain = client.produce(queue, "y")
    client.purge(queue)
    shown = connected("history", "show", queue, keyed.id).out
    assert "key              customer/4\nkind             mail\n" in shown
    assert "\nkey  " not in connected("history", "show", queue, plain.id).out


def test_finished_messages_are_sent_again(connected: Forq, client: ForqClient, queue: str):
    sent = client.produce(queue, "x")
    client.purge(queue)
    missing = "01890a5d-ac96-774b-bcce-b302099a8057"
    result = connected("history", "requeue", queue, sent.id, missing)
    assert result.code == 5
    assert result.out == "1 message sent again\n"
    assert missing in result.err
    assert [each.content for each in client.receive(queue, wait_ms=0)] == ["x"]
