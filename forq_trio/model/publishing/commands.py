"""Commands on stages, publications and apps."""

from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.command import Command, CommandOrder, Effect, Noted, Traits, Work
from forq_trio.model.publishing.types import Published, Stage, Staged, StagedPart


def _staged_bytes(command: "StagePage") -> int:
    return sum([len(part.body) for part in command.parts])


def _stages(command: "Publish") -> int:
    return len(command.stages)


class StagePage(Command[Staged], frozen=True, gc=False):
    """Store a page of a stage, which lives for STAGE_LIFE_MS from then on.

    A page that exists already does not change, and is the outcome. If the key has STAGES_A_KEY_MAX stages, its oldest
    one without messages ends. Fails with StagingFull.
    """

    traits = Traits(CommandOrder.PUBLISH, Effect.GROWS, weighs=1, stores=_staged_bytes, work=Work.LONG)

    queue: str
    stage: str
    page: int
    parts: tuple[StagedPart, ...]
    key: Key = SECRET


class DiscardStage(Command[bool], frozen=True, gc=False):
    """End a stage: the next batches remove its pages. False if there is none of this name."""

    traits = Traits(CommandOrder.PUBLISH, Effect.LASTS, weighs=1, work=Work.PIPELINE)

    queue: str
    stage: str


class EndStages(Command[int], frozen=True, gc=False):
    """End the stages whose time is over, at most STAGES_ENDED_MAX; outcome: how many."""

    traits = Traits(CommandOrder.PUBLISH, Effect.REPEATS, weighs=1, work=Work.PIPELINE)


class Publish(Command[Published], frozen=True, gc=False):
    """Publish these stages in this order, all or none; later batches then move their messages into the queues.

    Nothing happens if the app has published this version, or a later one, before. The app is the one of that name that
    wrote one of these queues or was made by this key (the rules are in storage/apps.py); these queues are added to its
    own. Fails with AppInUse, with StageMissing for a stage that does not have exactly the named pages, with QueueFull,
    counting the messages in the queues and on their way to them, and with TooManyApps. once: the app's name is used for
    one job only, and soon forgotten.
    """

    traits = Traits(
        CommandOrder.PUBLISH, Effect.GROWS, weighs=_stages, work=Work.PIPELINE, noted=Noted.PUBLICATIONS
    )

    app: str
    version: int
    stages: tuple[Stage, ...]
    once: bool = False
    key: Key = SECRET


class ForgetApp(Command[bool], frozen=True, gc=False):
    """Forget the apps of this name if the key covers all of their queues; False if there is none."""

    traits = Traits(CommandOrder.PUBLISH, Effect.LASTS, weighs=1)

    app: str
    key: Key = SECRET
