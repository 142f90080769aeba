// Amazon's SDK for Go, from the first message to an empty queue. It compares the MD5 of every body.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sort"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

var (
	ctx, _ = context.WithTimeout(context.Background(), time.Minute)
	client *sqs.Client
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Panic(err)
	}
	return value
}

func check(ok bool, said ...any) {
	if !ok {
		log.Panic(said...)
	}
}

func create(name string, attributes map[string]string) *string {
	return must(client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})).QueueUrl
}

func attributes(url *string) map[string]string {
	all := []types.QueueAttributeName{types.QueueAttributeNameAll}
	asked := &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: all}
	return must(client.GetQueueAttributes(ctx, asked)).Attributes
}

func receive(url *string, most int32) []types.Message {
	return must(client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: most, WaitTimeSeconds: 20,
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})).Messages
}

func batches() {
	url := create("orders", nil)
	var entries []types.SendMessageBatchRequestEntry
	for number := range 10 {
		text := strconv.Itoa(number)
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: &text, MessageBody: aws.String("order über 日本 " + text),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"number": {DataType: aws.String("Number"), StringValue: &text},
				"bytes":  {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255, byte(number)}},
			},
		})
	}
	sent := must(client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: url, Entries: entries}))
	check(len(sent.Successful) == 10 && len(sent.Failed) == 0, sent)
	check(attributes(url)["ApproximateNumberOfMessages"] == "10", attributes(url))

	var numbers []int
	for len(numbers) < 10 {
		var done []types.DeleteMessageBatchRequestEntry
		for _, message := range receive(url, 10) {
			number := must(strconv.Atoi(*message.MessageAttributes["number"].StringValue))
			check(message.MessageAttributes["bytes"].BinaryValue[2] == byte(number), message)
			check(message.Attributes["ApproximateReceiveCount"] == "1", message)
			numbers = append(numbers, number)
			done = append(done, types.DeleteMessageBatchRequestEntry{
				Id: message.MessageId, ReceiptHandle: message.ReceiptHandle,
			})
		}
		deleted := must(client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: done}))
		check(len(deleted.Failed) == 0, deleted)
	}
	sort.Ints(numbers)
	check(fmt.Sprint(numbers) == "[0 1 2 3 4 5 6 7 8 9]", numbers)
	check(attributes(url)["ApproximateNumberOfMessagesNotVisible"] == "0", attributes(url))
}

func release(url, handle *string) {
	must(client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: handle}))
}

// A message that nobody can handle goes to the dead letters, and a move task brings it back.
func failures() {
	graves := create("graves", nil)
	arn := attributes(graves)["QueueArn"]
	url := create("fragile", map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":"2"}`, arn),
	})
	must(client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("bad")}))
	for range 2 {
		release(url, receive(url, 1)[0].ReceiptHandle)
	}
	buried := receive(graves, 1)[0]
	check(*buried.Body == "bad", buried)
	release(graves, buried.ReceiptHandle)
	must(client.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{SourceArn: &arn}))
	back := receive(url, 1)[0]
	check(*back.Body == "bad", back)
	must(client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: back.ReceiptHandle}))
}

func pages() {
	seen := map[string]bool{}
	pages := sqs.NewListQueuesPaginator(client, &sqs.ListQueuesInput{MaxResults: aws.Int32(2)})
	for pages.HasMorePages() {
		for _, url := range must(pages.NextPage(ctx)).QueueUrls {
			seen[url] = true
		}
	}
	check(len(seen) == 3, seen)
}

func faults() {
	_, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("nowhere")})
	var missing *types.QueueDoesNotExist
	check(errors.As(err, &missing), err)
	_, err = client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String("orders"), MaxNumberOfMessages: 11})
	var refused smithy.APIError
	check(errors.As(err, &refused) && refused.ErrorCode() == "InvalidParameterValue", err)
}

func main() {
	client = sqs.NewFromConfig(must(config.LoadDefaultConfig(ctx)))
	batches()
	failures()
	pages()
	faults()
	fmt.Println("alive")
}
