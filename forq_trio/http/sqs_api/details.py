"""What only SQS says of a queue: read, and changed in one commit with its settings."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.details_budget import DetailsBudget
from forq_trio.http.sqs_api.errors import INVALID_ATTRIBUTE_VALUE, SqsError
from forq_trio.http.sqs_api.names import SqsAccount, SqsQueue, queue_of_full_name
from forq_trio.model.clock import machine_ms
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.model.sqs.policies import Statement
from forq_trio.model.sqs.types import SqsChange, SqsDetails

_NO_CHANGE = SettingsChange()
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_STATEMENTS: Mapping[str, Statement | None] = MappingProxyType({})


def stored_details_of(broker: Broker, house_name: str) -> SqsDetails | None:
    """The details of a queue; None if SQS never changed it."""
    return broker.known.settings_of(house_name).sqs


def attributes_of_queue(broker: Broker, house_name: str) -> Mapping[str, str]:
    """The attributes of a queue that are no settings, as they were set."""
    found = stored_details_of(broker, house_name)
    return _NOTHING if found is None else found.attributes


def details_of(broker: Broker, queue: SqsQueue) -> SqsDetails:
    """The details of a queue; of one that SQS never changed, none but the times: now."""
    found = stored_details_of(broker, queue.house_name)
    now = machine_ms()
    return (
        SqsDetails(full_name=_long_name(queue), created_at=now, modified_at=now) if found is None else found
    )


def _long_name(queue: SqsQueue) -> str:
    """Its name, if that is longer than names may be in the rest of the server; otherwise \"\"."""
    return queue.full_name if queue.house_name != queue.full_name else ""


def queue_in_house(broker: Broker, house_name: str, region: str, account: SqsAccount) -> SqsQueue | None:
    """The queue of this region that has this name in the rest of the server; None if it has none here."""
    settings = broker.known.settings().get(house_name)
    details = None if settings is None else settings.sqs
    full_name = house_name if details is None or not details.full_name else details.full_name
    found = queue_of_full_name(full_name, region, account)
    return found if found is not None and found.house_name == house_name else None


class DetailChanges:
    """Stores changed details."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._budget = DetailsBudget(broker)

    async def store(
        self,
        queue: SqsQueue,
        settings: SettingsChange = _NO_CHANGE,
        *,
        attributes: Mapping[str, str] = _NOTHING,
        tags: Mapping[str, str] = _NOTHING,
        untagged: Collection[str] = (),
        statements: Mapping[str, Statement | None] = _NO_STATEMENTS,
    ) -> None:
        """Store changed details, and the settings that change with them.

        attributes: "" removes one. statements: of the policy, by their labels; None removes one.

        Raises SqsError.
        """
        change = SqsChange(
            full_name=_long_name(queue),
            at_ms=machine_ms(),
            attributes=dict(attributes),
            tags=dict(tags),
            untagged=frozenset(untagged),
            statements=dict(statements),
            policy_id=f"{queue.arn}/SQSDefaultPolicy",
        )
        try:
            changed = change.applied_to(stored_details_of(self._broker, queue.house_name))
            async with self._budget.admitted(queue.house_name, changed):
                await self._broker.change_sqs_queue(queue.house_name, settings, change)
        except InvalidSetting as error:
            raise SqsError(INVALID_ATTRIBUTE_VALUE, error.api_message) from None
