"""The connections of the UI, bounded in all, by address, by session and by token.

Rules
- A connection is keyless until a request on it shows a session. Keyless ones are bounded in all and by address.
- Beyond a bound a new connection replaces the keyless one that has been idle for longest: of the same address, or,
  beyond the bound of all keyless ones, of the address that has most. If no connection of that address is idle, and it
  has more of them than the new one's would have, it loses one whose request does not run yet. Else the new one is
  refused.
- Connections with a session are bounded in all, by session, and by access token, with the same rules among the
  connections of the session or token.
- If the process may have only few open files, all bounds are lower (`http/transport/open_files.py`). An address has at
  most half of the keyless connections, and a session or a token half of those with a session.
"""

from collections.abc import Callable
from dataclasses import dataclass

from forq_trio.model import limits
from forq_trio.ui.viewer import Viewer

Group = tuple[str, str]
_KEYLESS, _SESSIONS = ("keyless", ""), ("sessions", "")
_ADDRESS = "address"


@dataclass(eq=False)
class ConnectionPlace:
    """The place of one connection."""

    cut: Callable[[], None]  # ends it
    used: int  # grows with each request
    groups: tuple[Group, ...] = ()  # the groups whose bounds count it
    busy: bool = False  # it has a request
    waits: bool = False  # its request does not run yet
    session: str | None = None


class UiConnections:
    """All places. connections_max: in all. by_address: False behind a proxy, which connects for all clients."""

    def __init__(self, connections_max: int = limits.UI_CONNECTIONS_MAX, *, by_address: bool = True) -> None:
        keyless_max = max(1, connections_max * limits.UI_KEYLESS_CONNECTIONS_MAX // limits.UI_CONNECTIONS_MAX)
        sessions_max = max(1, connections_max - keyless_max)
        half = max(1, sessions_max // 2)
        self._keyless_max, self._sessions_max = keyless_max, sessions_max
        self._address_max = (
            min(limits.UI_CONNECTIONS_AN_ADDRESS_MAX, max(1, keyless_max // 2)) if by_address else keyless_max
        )
        self._session_max = min(limits.UI_CONNECTIONS_A_SESSION_MAX, half)
        self._token_max = min(limits.UI_CONNECTIONS_A_TOKEN_MAX, half)
        self._groups: dict[Group, set[ConnectionPlace]] = {}
        self._uses = 0

    def __len__(self) -> int:
        return self._size(_KEYLESS) + self._size(_SESSIONS)

    def enter(self, address: str, cut: Callable[[], None]) -> ConnectionPlace | None:
        """A place for a new connection; None if it is refused."""
        own = _ADDRESS, address
        if not self._free_place(own, self._address_max):
            return None
        if self._size(_KEYLESS) >= self._keyless_max:
            most = max((group for group in self._groups if group[0] == _ADDRESS), key=self._size)
            has_more = self._size(most) > self._size(own) + 1
            if not self._free_place(most, self._size(most), or_waiting=has_more):
                return None
        place = ConnectionPlace(cut, self._next_use())
        self._join(place, (_KEYLESS, own))
        return place

    def begin(self, place: ConnectionPlace, viewer: Viewer | None) -> bool:
        """Begin a request of this viewer; False if a bound refuses it, and the connection should end."""
        if not place.groups:
            return False
        if viewer is not None and viewer.digest != place.session:
            bounds = {("session", viewer.digest): self._session_max, _SESSIONS: self._sessions_max}
            if viewer.token is not None:
                bounds["token", viewer.token.digest.hex] = self._token_max
            if not all(self._free_place(group, places_max) for group, places_max in bounds.items()):
                return False
            self.leave(place)
            self._join(place, tuple(bounds))
            place.session = viewer.digest
        place.used = self._next_use()
        place.busy = place.waits = True
        return True

    def run(self, place: ConnectionPlace) -> None:
        """Note that the request runs, so that the connection is no longer cut for others."""
        place.waits = False

    def end(self, place: ConnectionPlace) -> None:
        """Note that the request has ended."""
        place.busy = place.waits = False
        place.used = self._next_use()

    def leave(self, place: ConnectionPlace) -> None:
        """Give the place back, because the connection has ended or is about to. A second call does nothing."""
        groups, place.groups = place.groups, ()
        for group in groups:
            places = self._groups[group]
            places.discard(place)
            if not places:
                del self._groups[group]

    def _join(self, place: ConnectionPlace, groups: tuple[Group, ...]) -> None:
        place.groups = groups
        for group in groups:
            self._groups.setdefault(group, set()).add(place)

    def _size(self, group: Group) -> int:
        return len(self._groups.get(group, ()))

    def _free_place(self, group: Group, places_max: int, *, or_waiting: bool = False) -> bool:
        """Whether the group has a free place, if need be after cutting its connection that has been idle for longest.

        or_waiting: if none is idle, cut one whose request waits.
        """
        if self._size(group) < places_max:
            return True
        places = self._groups[group]
        idle = [place for place in places if not place.busy]
        if or_waiting and not idle:
            idle = [place for place in places if place.waits]
        if not idle:
            return False
        oldest = min(idle, key=lambda place: place.used)
        self.leave(oldest)
        oldest.cut()
        return True

    def _next_use(self) -> int:
        self._uses += 1
        return self._uses
