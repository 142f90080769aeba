"""What a queue has that only clients of SQS see: attributes without a meaning elsewhere, tags, and times."""

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.sqs.policies import POLICY, Statement, changed_policy
from forq_trio.model.values import EpochMs


class SqsDetails(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Stored with the settings of a queue that a client of SQS made or changed."""

    full_name: str = ""  # its name in SQS, where that is longer than names may be here
    created_at: EpochMs  # when it was made through SQS, or first changed
    modified_at: EpochMs  # when its attributes last changed
    attributes: dict[str, str] = {}  # those that are not settings of the queue, as they were set
    tags: dict[str, str] = {}  # as they were set

    def changed(self, change: "SqsChange") -> "SqsDetails":
        """These details after `change`. Raises InvalidSetting for too many tags, or a policy that is too long."""
        attributes = self.attributes | change.attributes
        if change.statements:
            policy = attributes.get(POLICY, "")
            attributes[POLICY] = changed_policy(policy, change.statements, change.policy_id)
        attributes = {name: value for name, value in attributes.items() if value}
        tags = {key: value for key, value in (self.tags | change.tags).items() if key not in change.untagged}
        if len(tags) > limits.SQS_TAGS_MAX:
            raise InvalidSetting(f"A queue has at most {limits.SQS_TAGS_MAX} tags.")
        return replace(self, modified_at=change.at_ms, attributes=attributes, tags=tags)


class SqsChange(Struct, frozen=True, kw_only=True):
    """What a request of SQS changes. The writer applies it, so that two changes at once are both done."""

    full_name: str  # of a queue that has no details yet
    at_ms: EpochMs
    attributes: dict[str, str] = {}  # "" removes one
    tags: dict[str, str] = {}
    untagged: frozenset[str] = frozenset()
    statements: dict[str, Statement | None] = {}  # of its policy, by their labels; None removes one
    policy_id: str = ""  # of a policy that those statements begin

    def applied_to(self, details: SqsDetails | None) -> SqsDetails:
        """The details of a queue after this change. None: it had none. Raises InvalidSetting."""
        new = SqsDetails(full_name=self.full_name, created_at=self.at_ms, modified_at=self.at_ms)
        return (new if details is None else details).changed(self)
