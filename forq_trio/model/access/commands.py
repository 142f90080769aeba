"""Commands on access tokens, and on sessions of the admin UI."""

from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import AccessToken
from forq_trio.model.command import Command, CommandOrder, Effect, Noted, Traits


class SaveToken(Command[None], frozen=True, gc=False):
    """Store an access token. Fails with TokenExists if the name is taken, with TooManyTokens beyond TOKENS_MAX.

    If so many are stored, the one that expired longest ago is removed first.
    """

    traits = Traits(CommandOrder.ACCESS, Effect.LASTS, weighs=1, noted=Noted.TOKENS)

    token: AccessToken


class RevokeToken(Command[bool], frozen=True, gc=False):
    """Remove the token of this name; False if there is none."""

    traits = Traits(CommandOrder.ACCESS, Effect.LASTS, weighs=1, noted=Noted.TOKENS)

    name: str


class NoteTokenUse(Command[None], frozen=True, gc=False):
    """Store when tokens were last used: epoch ms by name; names of revoked tokens are ignored."""

    traits = Traits(CommandOrder.ACCESS, Effect.REPEATS, weighs=1, noted=Noted.TOKENS)

    used: dict[str, int]


class SaveSession(Command[None], frozen=True, gc=False):
    """Store a session of the admin UI. Expired sessions are removed.

    If there are SESSIONS_MAX sessions, the one that was used longest ago is removed, too.
    """

    traits = Traits(CommandOrder.ACCESS, Effect.LASTS, weighs=1)

    session: UiSession


class EndSessions(Command[int], frozen=True, gc=False):
    """Remove the sessions with these digests; None: all. Outcome: how many there were."""

    traits = Traits(CommandOrder.ACCESS, Effect.LASTS, weighs=1)

    digests: tuple[str, ...] | None


class NoteSessionUse(Command[None], frozen=True, gc=False):
    """Store when sessions were last used: epoch ms by digest; those of ended sessions are ignored."""

    traits = Traits(CommandOrder.ACCESS, Effect.REPEATS, weighs=1)

    used: dict[str, int]
