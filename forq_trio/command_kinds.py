"""Kinds of commands that the writer treats alike."""

from collections.abc import Set
from typing import Any

from forq_trio.model.commands import (
    Cancel,
    Command,
    Compact,
    Configure,
    Delete,
    DiscardStage,
    DropPages,
    EndSessions,
    EndStages,
    ForgetApp,
    ForgetConsumer,
    ForgetQueue,
    ForgetRedrive,
    LeaseMessages,
    Nack,
    NackById,
    NoteConsumerUse,
    NoteTokenUse,
    OpenConsumer,
    Pause,
    Ping,
    Produce,
    ProduceEach,
    ProduceMany,
    Publish,
    Purge,
    PurgeHistory,
    Redrive,
    Resubmit,
    RevokeToken,
    SaveRedrive,
    SaveSession,
    SaveToken,
    SettleLease,
    StagePage,
    TrimEvents,
    TrimHistory,
)

GROWING: Set[type[Command[Any]]] = frozenset(
    {Produce, ProduceMany, ProduceEach, Resubmit, StagePage, Publish, LeaseMessages}
)
"""Commands that make the database grow: refused while the disk is full."""
LASTING: Set[type[Command[Any]]] = GROWING | {
    Configure,
    Pause,
    Redrive,
    Delete,
    Cancel,
    Purge,
    PurgeHistory,
    ForgetQueue,
    SaveToken,
    RevokeToken,
    SaveSession,
    EndSessions,
    SaveRedrive,
    ForgetRedrive,
    DiscardStage,
    ForgetApp,
    OpenConsumer,
    SettleLease,
    DropPages,
    ForgetConsumer,
    Ping,
}
"""Commands whose outcome must last: refused while a file of the database is lost.

Any other one, if it is lost, leads to a second delivery at worst, or to an older time of use of a token or session.
"""
LONG_WORK: Set[type[Command[Any]]] = frozenset(
    {LeaseMessages, SettleLease, DropPages, StagePage, TrimEvents, TrimHistory, Purge, PurgeHistory, Compact}
)
"""Large steps, of which there are many one after the other; nobody waits for a single one."""
OF_PIPELINES: Set[type[Command[Any]]] = LONG_WORK | {
    Publish,
    DiscardStage,
    EndStages,
    OpenConsumer,
    NoteConsumerUse,
    ForgetConsumer,
}
"""Long work, and what begins and ends it: nobody else waits for these."""
CHANGING_TOKENS = frozenset({SaveToken, RevokeToken, NoteTokenUse})
NOTED = CHANGING_TOKENS | {Nack, NackById, Publish}
"""After these the writer looks at the tokens, at the reasons of nacks, or at publications, too."""
