"""Requests and answers of the 23 operations, as the service model has them.

The members are Amazon's, in Python's spelling. A request's members may all be absent, or null: operations say what is
missing in the words that clients know. Absent members of an answer are left out: clients take an empty list for a
different thing.
Source: botocore's `data/sqs/2012-11-05/service-2.json`.
"""

from msgspec import Struct, field


class Wire(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """Base of all shapes."""


class AttributeValue(Wire, frozen=True):
    """The value of a message attribute. Lists exist in the model, but AWS takes none."""

    data_type: str | None = None
    string_value: str | None = None
    binary_value: bytes | None = None


Attributes = dict[str, AttributeValue]


class CreateQueueRequest(Wire, frozen=True):
    queue_name: str | None = None
    attributes: dict[str, str] | None = None
    tags: dict[str, str] | None = field(default=None, name="tags")  # in small letters, unlike elsewhere


class GetQueueUrlRequest(Wire, frozen=True):
    queue_name: str | None = None
    queue_owner_account: str | None = field(default=None, name="QueueOwnerAWSAccountId")


class ListQueuesRequest(Wire, frozen=True):
    queue_name_prefix: str | None = None
    next_token: str | None = None
    max_results: int | None = None


class QueueUrlRequest(Wire, frozen=True):
    """Of operations that need the queue alone."""

    queue_url: str | None = None


class GetQueueAttributesRequest(QueueUrlRequest, frozen=True):
    attribute_names: list[str] | None = None


class SetQueueAttributesRequest(QueueUrlRequest, frozen=True):
    attributes: dict[str, str] | None = None


class AddPermissionRequest(QueueUrlRequest, frozen=True):
    label: str | None = None
    accounts: list[str] | None = field(default=None, name="AWSAccountIds")
    actions: list[str] | None = None


class RemovePermissionRequest(QueueUrlRequest, frozen=True):
    label: str | None = None


class TagQueueRequest(QueueUrlRequest, frozen=True):
    tags: dict[str, str] | None = None


class UntagQueueRequest(QueueUrlRequest, frozen=True):
    tag_keys: list[str] | None = None


class NewSqsMessage(Wire, frozen=True):
    """The members of a message, alone or in a batch."""

    message_body: str | None = None
    delay_seconds: int | None = None
    message_attributes: Attributes | None = None
    message_system_attributes: Attributes | None = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessageRequest(NewSqsMessage, frozen=True):
    queue_url: str | None = None


class SendEntry(NewSqsMessage, frozen=True):
    id: str | None = None


class SendMessageBatchRequest(QueueUrlRequest, frozen=True):
    entries: list[SendEntry] | None = None


class ReceiveMessageRequest(QueueUrlRequest, frozen=True):
    attribute_names: list[str] | None = None  # an older name of the next one
    message_system_attribute_names: list[str] | None = None
    message_attribute_names: list[str] | None = None
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None


class DeleteEntry(Wire, frozen=True):
    id: str | None = None
    receipt_handle: str | None = None


class DeleteMessageRequest(QueueUrlRequest, frozen=True):
    receipt_handle: str | None = None


class DeleteMessageBatchRequest(QueueUrlRequest, frozen=True):
    entries: list[DeleteEntry] | None = None


class VisibilityEntry(DeleteEntry, frozen=True):
    visibility_timeout: int | None = None


class ChangeVisibilityRequest(QueueUrlRequest, frozen=True):
    receipt_handle: str | None = None
    visibility_timeout: int | None = None


class ChangeVisibilityBatchRequest(QueueUrlRequest, frozen=True):
    entries: list[VisibilityEntry] | None = None


class ListDeadLetterSourceQueuesRequest(QueueUrlRequest, frozen=True):
    next_token: str | None = None
    max_results: int | None = None


class StartMoveTaskRequest(Wire, frozen=True):
    source_arn: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None


class CancelMoveTaskRequest(Wire, frozen=True):
    task_handle: str | None = None


class ListMoveTasksRequest(Wire, frozen=True):
    source_arn: str | None = None
    max_results: int | None = None


class Nothing(Wire, frozen=True):
    """The answer of operations without an output."""


class QueueUrlAnswer(Wire, frozen=True):
    queue_url: str


class QueueUrlsAnswer(Wire, frozen=True):
    queue_urls: list[str] = []
    next_token: str | None = None


class SourceQueuesAnswer(Wire, frozen=True):
    queue_urls: list[str] = field(name="queueUrls")
    next_token: str | None = None


class QueueAttributesAnswer(Wire, frozen=True):
    attributes: dict[str, str] = {}


class TagsAnswer(Wire, frozen=True):
    tags: dict[str, str] = {}


class SentAnswer(Wire, frozen=True):
    message_id: str
    md5_of_message_body: str = field(name="MD5OfMessageBody")
    md5_of_message_attributes: str | None = field(default=None, name="MD5OfMessageAttributes")
    md5_of_message_system_attributes: str | None = field(default=None, name="MD5OfMessageSystemAttributes")
    sequence_number: str | None = None


class SentEntry(SentAnswer, frozen=True, kw_only=True):
    id: str


class DoneEntry(Wire, frozen=True):
    id: str


class FailedEntry(Wire, frozen=True):
    id: str
    sender_fault: bool
    code: str
    message: str | None = None


class SentBatchAnswer(Wire, frozen=True):
    successful: list[SentEntry]
    failed: list[FailedEntry] = []


class DoneBatchAnswer(Wire, frozen=True):
    successful: list[DoneEntry]
    failed: list[FailedEntry] = []


class SqsMessage(Wire, frozen=True):
    message_id: str
    receipt_handle: str
    md5_of_body: str = field(name="MD5OfBody")
    body: str
    attributes: dict[str, str] = {}
    md5_of_message_attributes: str | None = field(default=None, name="MD5OfMessageAttributes")
    message_attributes: Attributes = {}


class ReceivedAnswer(Wire, frozen=True):
    messages: list[SqsMessage] = []


class MoveTaskStarted(Wire, frozen=True):
    task_handle: str


class MoveTaskCancelled(Wire, frozen=True):
    moved: int = field(name="ApproximateNumberOfMessagesMoved")


class MoveTask(Wire, frozen=True):
    status: str
    source_arn: str
    started_timestamp: int  # epoch ms
    task_handle: str | None = None
    destination_arn: str | None = None
    per_second: int | None = field(default=None, name="MaxNumberOfMessagesPerSecond")
    moved: int | None = field(default=None, name="ApproximateNumberOfMessagesMoved")
    to_move: int | None = field(default=None, name="ApproximateNumberOfMessagesToMove")
    failure_reason: str | None = None


class MoveTasksAnswer(Wire, frozen=True):
    results: list[MoveTask] = []


REQUESTS: dict[str, type[Wire]] = {
    "AddPermission": AddPermissionRequest,
    "CancelMessageMoveTask": CancelMoveTaskRequest,
    "ChangeMessageVisibility": ChangeVisibilityRequest,
    "ChangeMessageVisibilityBatch": ChangeVisibilityBatchRequest,
    "CreateQueue": CreateQueueRequest,
    "DeleteMessage": DeleteMessageRequest,
    "DeleteMessageBatch": DeleteMessageBatchRequest,
    "DeleteQueue": QueueUrlRequest,
    "GetQueueAttributes": GetQueueAttributesRequest,
    "GetQueueUrl": GetQueueUrlRequest,
    "ListDeadLetterSourceQueues": ListDeadLetterSourceQueuesRequest,
    "ListMessageMoveTasks": ListMoveTasksRequest,
    "ListQueueTags": QueueUrlRequest,
    "ListQueues": ListQueuesRequest,
    "PurgeQueue": QueueUrlRequest,
    "ReceiveMessage": ReceiveMessageRequest,
    "RemovePermission": RemovePermissionRequest,
    "SendMessage": SendMessageRequest,
    "SendMessageBatch": SendMessageBatchRequest,
    "SetQueueAttributes": SetQueueAttributesRequest,
    "StartMessageMoveTask": StartMoveTaskRequest,
    "TagQueue": TagQueueRequest,
    "UntagQueue": UntagQueueRequest,
}
"""All operations, with the shapes of their requests."""
