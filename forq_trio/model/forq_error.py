"""The base classes of errors: each error has a code, a status and a sentence. The errors themselves are in `errors`."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple, TypeAlias

from forq_trio.model.error_names import in_json
from forq_trio.model.member_names import python_path


class Reason(NamedTuple):
    """The reason of a refusal.

    code: its code in Forq's API. status: of the answer in HTTP; 503: a later try may succeed.

    meaning: a sentence, for the documentation, and the message of answers without another one.
    """

    code: str
    status: int
    meaning: str


REASONS: dict[str, Reason] = {}
"""All reasons with which a server answers, by code."""

KINDS: "dict[str, type[ForqError]]" = {}
"""The classes of the errors with which a server answers, by code."""


class ForqError(Exception):
    """Base of every error that this package raises on purpose. Without a message, the docstring is the message.

    field: the argument that is wrong, by its name in Python, or a path into it; None for the whole. member: the same by
    its name in JSON. message: the reason as a sentence.
    """

    code: str = "forq.error"  # Forq's word for the reason
    status: ClassVar[int] = 500
    # servers send the message to callers; otherwise it is for the log, and callers get the sentence of the class
    message_for_callers: ClassVar[bool] = False
    members: ClassVar[Mapping[str, Reason]] = {}  # the reasons of members that have their own
    nested: ClassVar[bool] = (
        False  # whether a member at fault may have members, of which the message names one
    )

    def __init_subclass__(
        cls,
        *,
        code: str = "",
        status: int = 0,
        means: str = "",
        members: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        """code, status: inherited if they are left out. members: code and meaning of each member with its own code.

        means: what the code means, if that is more than the docstring says.
        """
        cls.status = status or cls.status
        if code:
            cls.code = code
            cls._declare(Reason(code, cls.status, means or f"{cls.sentence()}."))
        if members is not None:
            cls.declare_members(members)

    @classmethod
    def declare_members(cls, members: Mapping[str, tuple[str, str]]) -> None:
        """Give the error its members, with code and meaning of each."""
        cls.members = {name: Reason(each, cls.status, meaning) for name, (each, meaning) in members.items()}
        for reason in cls.members.values():
            cls._declare(reason)

    @classmethod
    def _declare(cls, reason: Reason) -> None:
        if reason.code in REASONS:
            raise TypeError(f"two errors have the code {reason.code}")
        REASONS[reason.code] = reason
        KINDS[reason.code] = cls

    @classmethod
    def sentence(cls) -> str:
        """The reason as a sentence without its full stop."""
        return " ".join((cls.__doc__ or cls.__name__).split())

    @classmethod
    def about(cls, member: str) -> Reason:
        """The reason if this member of a request, or parameter of a query, is at fault."""
        return cls.members.get(member) or REASONS[cls.code]

    def __init__(
        self, message: str | None = None, *, field: str | None = None, code: str | None = None
    ) -> None:
        """field: by its name in JSON."""
        if message is None:
            sentence = self.sentence()
            message = sentence[:1].lower() + sentence[1:]
        self.message = message
        super().__init__(message)
        self.member = field
        self.field = None if field is None else python_path(field)
        own = self.members.get(field or "")
        self.code = code or (type(self).code if own is None else own.code)

    @property
    def api_message(self) -> str:
        """The message with the names of JSON, as the API answers it."""
        return in_json(self.message, self.member, nested=self.nested) if self.member else self.message


class CallerError(ForqError, status=400):
    """The request cannot be carried out as it was made"""

    message_for_callers = True


class ServiceError(ForqError, status=503):
    """The service could not do it now"""


class NotFound(CallerError, status=404):
    """There is no such thing"""

    code = "not_found"


AnyReason: TypeAlias = type[ForqError] | Reason
"""An error, or its reason if a certain member of the request is at fault."""
