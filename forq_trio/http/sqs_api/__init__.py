"""The dialect of Amazon SQS: AWS JSON 1.0 and the query protocol, signed with Signature Version 4."""

from forq_trio.http.sqs_api.names import SqsAccount
from forq_trio.http.sqs_api.routes import answering_as_sqs, sqs_routes

__all__ = ["SqsAccount", "answering_as_sqs", "sqs_routes"]
