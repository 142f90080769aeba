"""What a method calls that is one command. It is declared whole, so broker and clients have no code for it."""

from abc import ABC, abstractmethod
from typing import TypeVar

from forq_trio.model.endpoint import CommandEndpoint

AnswerT = TypeVar("AnswerT")


class CommandMethods(ABC):
    """The broker runs the command of an endpoint; a client calls the endpoint."""

    @abstractmethod
    async def _perform(self, endpoint: CommandEndpoint[AnswerT], **arguments: object) -> AnswerT:
        """Do what the endpoint does. arguments: the values of its path, query and body, by their names in Python."""
