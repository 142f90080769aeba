"""What Amazon's SQS says of a queue that the rest of the server does not."""
