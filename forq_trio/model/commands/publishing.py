"""Commands on stages, publications and apps."""

from forq_trio.model.access import SECRET, Key
from forq_trio.model.commands.base import Command, CommandOrder, Effect, Noted, Traits, Work
from forq_trio.model.publishing import Published, Stage, Staged, StagedPart


def _staged_bytes(command: "StagePage") -> int:
    return sum([len(part.body) for part in command.parts])


def _stages(command: "Publish") -> int:
    return len(command.stages)


class StagePage(Command[Staged], frozen=True, gc=False):
    """Store a page of a stage, which lives for STAGE_LIFE_MS from then on.

    A page that is there already is left as it is, and is the outcome. Where the key has STAGES_A_KEY_MAX stages, its
    oldest one without messages ends. Fails with StagingFull.
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
    """Publish these stages in this order, all or none: from then on the batches move their messages into the queues.

    Nothing happens if the app published this version, or a later one, before. The app is that of its name which wrote
    one of these queues, or was made by this key; its queues are from then on those and these. Fails with AppInUse (the
    rules are in storage/apps.py), with StageMissing for a stage that has not exactly its pages, with QueueFull, by what
    is in the queues now and on its way to them, and TooManyApps. once: the app's name is used for one job only, and
    soon forgotten.
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
    """Forget the apps of this name all of whose queues the key covers; False if there is none."""

    traits = Traits(CommandOrder.PUBLISH, Effect.LASTS, weighs=1)

    app: str
    key: Key = SECRET
