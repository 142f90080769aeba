"""`forq history show`."""

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
