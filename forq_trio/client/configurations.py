"""Reads the settings of queues. No I/O in here."""

import msgspec
from msgspec import Struct

from forq_trio.client.http1 import HttpAnswer
from forq_trio.client.protocol import read_answer
from forq_trio.model.queues.bodies import QueueConfiguration
from forq_trio.model.queues.setting_values import ExponentialBackOff, Rate
from forq_trio.model.queues.settings import QueueRules, QueueSettings


class _BackOff(ExponentialBackOff, frozen=True, forbid_unknown_fields=False):
    """As an answer."""


class _Rate(Rate, frozen=True, forbid_unknown_fields=False):
    """As an answer."""


class _Settings(QueueSettings, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """As an answer."""

    back_off: tuple[int, ...] | _BackOff | None = None
    rate: _Rate | None = None


class _Rules(QueueRules, frozen=True, kw_only=True):
    """As an answer."""

    back_off: tuple[int, ...] | _BackOff
    rate: _Rate | None = None


class _Configuration(Struct):
    """The answer with the settings of a queue."""

    settings: _Settings
    effective: _Rules


def read_configuration(answer: HttpAnswer) -> QueueConfiguration:
    """The settings of an answer. Raises ForqProtocolError."""
    # Types of settings refuse unknown members, as requests do. So members of a newer server are dropped first.
    return msgspec.convert(msgspec.to_builtins(read_answer(answer, _Configuration)), QueueConfiguration)
