"""The options of the dialect, and the sizes that follow from them. Times are in seconds, as in its JSON."""

from msgspec import Struct

from forq_trio.model import limits


class SasquatchOptions(Struct, frozen=True, kw_only=True):
    """The settings sasquatch_*, without those about the server; the defaults are Sasquatch's.

    poison_max_receives: after this many receives a message is deleted, whatever its consumers ask for.
    """

    max_queue_length: int = 5_000
    max_message_size_kb: int = 256
    max_request_body_size_kb: int = 1_024
    default_visibility_timeout: int = 30
    default_max_receives: int = 4
    poison_max_receives: int = 100
    default_retention_period: int = 345_600
    default_wait_time_seconds: int = limits.SASQUATCH_WAIT_SECONDS_MAX
    default_dedup_time_period: int = 300
    default_priority: int = limits.PRIORITY_DEFAULT

    @property
    def message_bytes_max(self) -> int:
        """The longest message body, in bytes of UTF-8."""
        return self.max_message_size_kb * limits.KIB

    @property
    def request_bytes_max(self) -> int:
        """The longest request of an endpoint that sends nothing."""
        return self.max_request_body_size_kb * limits.KIB

    @property
    def send_bytes_max(self) -> int:
        """The longest request of /send: JSON may write one byte as six (\\u0000)."""
        return 6 * self.message_bytes_max + limits.SASQUATCH_OVERHEAD_BYTES

    @property
    def send_batch_bytes_max(self) -> int:
        """The longest request of /send_batch: ten messages of full length, or one with all its bytes escaped."""
        each = self.message_bytes_max + limits.SASQUATCH_OVERHEAD_BYTES
        return max(self.send_bytes_max, limits.SASQUATCH_BATCH_MAX * each)

    @property
    def body_bytes_max(self) -> int:
        """The longest request of all."""
        return max(self.send_batch_bytes_max, self.request_bytes_max)
