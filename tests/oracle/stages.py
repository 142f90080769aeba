"""A stage in the reference engine."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from forq_trio.model.publishing.types import KeyShare, PublishedVersion, StagedPart, Staging
from forq_trio.storage.rules import Space


class StoredStage(Struct, frozen=True, gc=False):
    """A stage. name: None once it has an entry number. parts: those that are left, by page and part."""

    queue: str
    name: str | None
    parts: tuple[tuple[int, int, StagedPart], ...]
    expires_at: int
    entry: int | None = None
    published: bool = False
    made_by: str = ""

    @property
    def pages(self) -> list[int]:
        return sorted({page for page, _, _ in self.parts})

    @property
    def stored_bytes(self) -> int:
        return sum(len(part.body) for _, _, part in self.parts)

    @property
    def space(self) -> Space:
        parts = [part for _, _, part in self.parts]
        return Space(sum(part.messages for part in parts), sum(part.bytes for part in parts))


def staging_of(
    stages: Mapping[int, StoredStage], last_entry: int, apps: Collection[PublishedVersion]
) -> Staging:
    """The totals of all stages and apps."""
    numbered = [stage for stage in stages.values() if stage.entry is not None]
    return Staging(
        stages=len(stages),
        bytes=sum(stage.stored_bytes for stage in stages.values()),
        in_progress=len(numbered),
        first_entry=min(
            [stage.entry for stage in numbered if stage.entry is not None and stage.published], default=None
        ),
        last_entry=last_entry,
        apps=len(apps),
        shares=_shares(stages.values(), apps),
    )


def _shares(stages: Iterable[StoredStage], apps: Iterable[PublishedVersion]) -> dict[str, KeyShare]:
    waiting, size, published = Counter[str](), Counter[str](), Counter(app.made_by for app in apps)
    for stage in stages:
        waiting[stage.made_by] += stage.name is not None
        size[stage.made_by] += stage.stored_bytes
    names = (+waiting).keys() | (+size).keys() | published.keys()
    return {name: KeyShare(waiting[name], size[name], published[name]) for name in names}
