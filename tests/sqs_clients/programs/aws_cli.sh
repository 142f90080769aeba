# The AWS CLI: a message with an attribute, one that comes again, pages, and an error.
set -eu
# In version 1 Amazon's address of SQS goes before the variable.
aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL_SQS" "$@"; }
url=$(aws sqs create-queue --queue-name orders --attributes VisibilityTimeout=60 --query QueueUrl --output text)
aws sqs send-message --queue-url "$url" --message-body über \
  --message-attributes '{"kind": {"DataType": "String", "StringValue": "rød"}}' > sent.json
receive() {
  aws sqs receive-message --queue-url "$url" --wait-time-seconds 20 --message-attribute-names All \
    --query 'Messages[0].[Body, ReceiptHandle]' --output text > received.txt
  cut -f 1 received.txt
  handle=$(cut -f 2 received.txt)
}
receive
aws sqs delete-message --queue-url "$url" --receipt-handle "$handle"

aws sqs send-message-batch --queue-url "$url" --entries 'Id=a,MessageBody=come again' > sent.json
receive > first.txt
aws sqs change-message-visibility --queue-url "$url" --receipt-handle "$handle" --visibility-timeout 0
receive
aws sqs delete-message --queue-url "$url" --receipt-handle "$handle"

test "$(aws sqs list-queues --page-size 1 --query 'length(QueueUrls)')" = 1
test "$(aws sqs get-queue-attributes --queue-url "$url" --attribute-names All --output text \
  --query 'Attributes.[ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible]')" = "0	0"
aws sqs get-queue-url --queue-name nowhere 2>&1 | grep -o NonExistentQueue
aws sqs delete-queue --queue-url "$url"
echo alive
