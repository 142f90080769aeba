"""What a process tells the others of its batches, where they can hear it: not through a pool."""

import select
from contextlib import closing

from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import AccessToken, Digest, Scope
from forq_trio.model.commands import (
    CancelRunning,
    Configure,
    EndSessions,
    RevokeToken,
    SaveSession,
    SaveToken,
)
from forq_trio.model.queues.settings import SettingsChange
from support.actors import T0
from support.batches import do, run
from support.processes import WAIT_SECONDS_MAX
from support.words import claim, send


def test_who_begins_a_login_or_makes_a_queue_tells_the_others_to_look_at_once(open_one):
    """Behind a load balancer the next request is another server's."""
    a, b = open_one(), open_one()
    login = UiSession("d", None, "k", T0, T0 + 9_000, T0, "192.0.2.7", "a browser")
    token = AccessToken("t", (Scope.CONSUME,), "*", T0, None, None, Digest("d" * 64))
    with closing(a.listen()) as own, closing(b.listen()) as listener:
        for command, heard in (
            (SaveSession(login), None),
            (SaveToken(token), None),
            (EndSessions(None), None),
            (RevokeToken("t"), None),
            (Configure("q", SettingsChange(lease_ms=1)), None),
            (send(), {"q"}),
        ):
            do(a, command)
            own.tell(awaited=False)
            assert select.select([listener.socket], [], [], WAIT_SECONDS_MAX)[0]
            assert listener.heard() == heard
            assert select.select([own.socket], [], [], WAIT_SECONDS_MAX)[0]
            own.heard()


def test_who_removes_a_message_in_process_tells_the_others_at_once(open_one):
    """Its worker may wait at any of them."""
    a, b = open_one(), open_one()
    sent = do(a, send())
    do(a, claim())
    with closing(a.listen()) as own, closing(b.listen()) as listener:
        do(a, CancelRunning("q", sent.id))
        own.tell(awaited=False)
        assert select.select([listener.socket], [], [], WAIT_SECONDS_MAX)[0]
        assert listener.heard() is None
    run(b)
    (found,) = b.snapshot().withdrawn.entries
    assert (found.queue, found.message_id, found.how) == ("q", sent.id, "cancelled")
    assert b.snapshot().withdrawn == a.snapshot().withdrawn
