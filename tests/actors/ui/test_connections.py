"""Which connections the admin UI accepts, and which ones it ends to make space."""

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.ui.connections import ConnectionPlace, UiConnections
from forq_trio.ui.viewer import Viewer
from support.access import access_token

ADDRESSES = limits.UI_CONNECTIONS_AN_ADDRESS_MAX
SESSIONS_MAX = limits.UI_CONNECTIONS_MAX - limits.UI_KEYLESS_CONNECTIONS_MAX


class Client:
    """Opens connections; `cut` is which of them were ended, by number."""

    def __init__(self, connections: UiConnections) -> None:
        self._connections = connections
        self.places: list[ConnectionPlace] = []
        self.cut: list[int] = []

    def open(
        self, address: str = "a", *, count: int = 1, busy: bool = False, viewer: Viewer | None = None
    ) -> int:
        """Open connections, each with a request; returns how many there was a place for."""
        opened = 0
        for _ in range(count):
            number = len(self.places)
            place = self._connections.enter(address, lambda number=number: self.cut.append(number))
            if place is None:
                continue
            self.places.append(place)
            if not self._connections.begin(place, viewer):
                self._connections.leave(place)
                continue
            if not busy:
                self._connections.end(place)
            opened += 1
        return opened


def session(name: str, token: str | None = None) -> Viewer:
    access = None if token is None else access_token(token, f"digest of {token}", (Scope.BROWSE,), "*", 0)
    return Viewer(name, f"digest of {name}", access)


@pytest.fixture
def connections() -> UiConnections:
    return UiConnections()


@pytest.fixture
def client(connections) -> Client:
    return Client(connections)


def test_one_more_of_an_address_takes_the_place_of_its_oldest(client, connections):
    assert client.open(count=ADDRESSES + 2) == ADDRESSES + 2
    assert client.cut == [0, 1]
    assert len(connections) == ADDRESSES
    assert client.open("b") == 1
    assert client.cut == [0, 1]


def test_the_oldest_is_the_one_without_a_request_for_longest(client, connections):
    client.open(count=ADDRESSES)
    connections.begin(client.places[0], None)
    connections.begin(client.places[1], None)
    connections.end(client.places[1])
    client.open(count=ADDRESSES - 1)
    assert client.cut == [*range(2, ADDRESSES), 1]


def test_where_all_wait_the_address_with_most_gives_up_one():
    connections = UiConnections(16)
    client = Client(connections)
    assert client.open("a", count=2, busy=True) == 2
    assert client.open("b", count=2, busy=True) == 2
    connections.run(client.places[0])
    assert client.open("c", count=2, busy=True) == 1
    assert client.cut == [1]
    for place in client.places[2:4]:
        connections.run(place)
    assert client.open("d", busy=True) == 0
    assert client.cut == [1]


def test_where_all_have_a_request_one_more_is_refused(client):
    assert client.open(count=ADDRESSES, busy=True) == ADDRESSES
    assert client.open() == 0
    assert client.open("b") == 1
    assert client.cut == []


def test_many_addresses_end_connections_of_the_one_that_has_most(client, connections):
    client.open("many", count=ADDRESSES)
    others = limits.UI_KEYLESS_CONNECTIONS_MAX - ADDRESSES
    assert sum(client.open(f"other {number}") for number in range(others)) == others
    assert client.open("one more", count=2) == 2
    assert client.cut == [0, 1]
    assert len(connections) == limits.UI_KEYLESS_CONNECTIONS_MAX


def test_connections_without_a_session_take_nothing_from_those_with_one(client):
    assert client.open("same", viewer=session("s"), busy=True) == 1
    for number in range(10):
        client.open("same" if number == 0 else f"{number}", count=ADDRESSES)
    assert 0 not in client.cut
    assert client.open("new", viewer=session("t")) == 1


def test_a_session_has_a_bounded_number(client, connections):
    bound = limits.UI_CONNECTIONS_A_SESSION_MAX
    assert client.open(count=bound, busy=True, viewer=session("s")) == bound
    assert client.open(viewer=session("s")) == 0
    assert client.open(viewer=session("t")) == 1
    connections.end(client.places[3])
    assert client.open(viewer=session("s")) == 1
    assert client.cut == [3]


def test_a_token_has_a_bounded_number_however_many_sessions_it_opens(client):
    bound = limits.UI_CONNECTIONS_A_TOKEN_MAX
    opened = sum(
        client.open(busy=True, viewer=session(f"s{number % 50}", "narrow")) for number in range(bound + 5)
    )
    assert opened == bound
    assert client.open(viewer=session("another", "other")) == 1
    assert client.open(viewer=session("secret")) == 1


def test_sessions_have_a_bound_in_all_and_leave_places_for_logins(client):
    opened = sum(
        client.open(busy=True, viewer=session(f"s{number // 50}", f"t{number // 200}"))
        for number in range(SESSIONS_MAX)
    )
    assert opened == SESSIONS_MAX
    assert client.open(viewer=session("one more")) == 0
    assert client.open("somebody") == 1


def test_a_connection_gives_its_place_back_once(client, connections):
    client.open(count=2)
    for _ in range(2):
        connections.leave(client.places[0])
    assert len(connections) == 1
    client.open(viewer=session("s"))
    connections.leave(client.places[-1])
    assert len(connections) == 1


def test_a_connection_that_was_ended_begins_nothing(client, connections):
    client.open(count=ADDRESSES + 1)
    assert not connections.begin(client.places[0], None)


def test_where_few_fit_all_bounds_are_lower_and_nobody_has_all_of_a_kind() -> None:
    connections = UiConnections(16)
    client = Client(connections)
    assert client.open("one", count=8, busy=True) == 2
    assert client.open("two", count=8, busy=True) == 2
    for place in client.places[:4]:
        connections.run(place)
    assert client.open("three", busy=True) == 0
    assert client.open("two", busy=True, viewer=session("s")) == 0, (
        "a session comes over a connection without one"
    )
    for place in client.places[:4]:
        connections.leave(place)
    assert sum(client.open(busy=True, viewer=session("s")) for _ in range(10)) == 6
    assert sum(client.open(busy=True, viewer=session("t")) for _ in range(10)) == 6
    assert client.open(viewer=session("u")) == 0
    assert len(connections) == 12


def test_where_one_fits_there_is_one() -> None:
    client = Client(UiConnections(1))
    assert client.open() == 1
    assert client.open(viewer=session("s")) == 1
