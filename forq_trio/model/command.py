"""The base class of commands, and what every command declares: its `Traits`.

The writer, its inbox and all engines read a command's traits; an engine's own table only says which function runs it. A
command class without traits cannot be defined.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, Generic, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

OutcomeT = TypeVar("OutcomeT")


class CommandOrder(Enum):
    """When a command runs within its batch: in the order of these members; within one, in the order of declaration."""

    SETTINGS = "settings"
    SEND = "sends"
    OFFER = "offers"
    SETTLE = "settlements"
    RESULTS = "settlements with results"
    MOVE = "moves and removals"
    KEYS = "new due times and removals by key"
    SWEEP = "sweeps"
    ACCESS = "tokens and sessions"
    TASKS = "tasks over dead letters"
    PUBLISH = "stages and publications"
    RELAY = "relayed messages"
    SCHEDULES = "schedules"
    BATCHES = "batches of messages"
    HISTORY = "the history"
    CONSUMERS = "pipeline consumers"
    EVENTS = "lifecycle events"
    UPKEEP = "maintenance"
    CLAIM = "claims"


class Effect(Enum):
    """What a command leaves in the database."""

    GROWS = "it makes the database grow: refused while the disk is nearly full, or a database file is missing"
    USES_RESERVE = (
        "it may grow by space that sends leave free: refused while even that is used, or a file is missing"
    )
    LASTS = "refused while a database file is missing"
    REPEATS = "at worst a message is delivered once more, a time of use is older, or a job does it again: never refused"


SENDING = frozenset({Effect.GROWS})
GROWING = frozenset({Effect.GROWS, Effect.USES_RESERVE})
LASTING = GROWING | {Effect.LASTS}


class Work(Enum):
    """How long a command takes, and whether a caller waits for it; read by step_scheduler.py."""

    SHORT = "somebody waits for it"
    PIPELINE = "it begins or ends long work: nobody else waits for it"
    LONG = "a large step, of which there are many one after the other; nobody waits for a single one"


class Noted(Enum):
    """What the writer notes once a command of this kind is committed."""

    TOKENS = "that access tokens may have changed"
    NACKS = "reasons of nacks"
    PUBLICATIONS = "publications"


class Traits(Struct, frozen=True, gc=False):
    """What holds for all commands of a class."""

    order: CommandOrder | None  # None for a command of the writer itself, which is in no batch
    effect: Effect
    # how many messages it can change; one that takes as long as several sends counts several times
    weighs: int | Callable[[Any], int]
    # how many bytes of content it stores at most, as a number or a function of the command. The sum of these
    # bounds a batch (inbox.py).
    stores: int | Callable[[Any], int] = 0
    work: Work | Callable[[Any], Work] = Work.SHORT
    noted: Noted | None = None
    called: str = ""  # how callers name it where it is refused; "" for what its class is called
    # the member whose first items a batch may process, leaving the others to the next one
    parts: str = "receipts"


class Command(Struct, Generic[OutcomeT], frozen=True, gc=False):
    """Base of all commands; OutcomeT is what its caller gets back. Each class sets its `traits`."""

    traits: ClassVar[Traits]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "traits" not in vars(cls):
            raise TypeError(f"{cls.__name__} does not say its traits")

    def message_count(self) -> int:
        """How many messages it can change."""
        weighs = self.traits.weighs
        return weighs if isinstance(weighs, int) else weighs(self)

    @property
    def work(self) -> Work:
        """How long it takes."""
        work = self.traits.work
        return work if isinstance(work, Work) else work(self)

    def part(self, start: int, stop: int | None = None) -> Self:
        """The command with only these of its parts."""
        return replace(self, **{self.traits.parts: getattr(self, self.traits.parts)[start:stop]})

    def when_full(self) -> "Command[OutcomeT]":
        """What is executed in its place while the disk is nearly full, because it stores less; itself by default."""
        return self

    def content_bytes(self) -> int:
        """How many bytes of content it stores at most."""
        stores = self.traits.stores
        return stores if isinstance(stores, int) else stores(self)
