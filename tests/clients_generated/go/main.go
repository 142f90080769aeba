// What a program does with the generated client: send, receive, ack, nack, list, and an error with its code.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"smoke/forq"
)

const queue = "orders"

func main() {
	withKey := func(_ context.Context, request *http.Request) error {
		request.Header.Set("X-API-Key", os.Getenv("FORQ_AUTH_SECRET"))
		return nil
	}
	client, err := forq.NewClientWithResponses(os.Getenv("FORQ_URL"), forq.WithRequestEditorFn(withKey))
	check(err == nil, "a client: %v", err)
	later, err := forq.NewClientWithResponses(os.Getenv("FORQ_LATER_URL"), forq.WithRequestEditorFn(withKey))
	check(err == nil, "a client: %v", err)
	ctx := context.Background()
	send(ctx, client)
	giveBack(ctx, client)
	receive(ctx, client)
	list(ctx, client)
	refused(ctx, client)
	ofALaterServer(ctx, later)
}

func check(good bool, format string, values ...any) {
	if !good {
		fmt.Fprintf(os.Stderr, format+"\n", values...)
		os.Exit(1)
	}
}

func send(ctx context.Context, client *forq.ClientWithResponses) {
	sent, err := client.SendMessageWithResponse(ctx, queue, nil, forq.NewMessage{Content: "one sofa"})
	check(err == nil && sent.StatusCode() == 204, "sent: %v", err)
	priority := 500
	attributes := map[string]string{"colour": "red"}
	batch, err := client.SendMessagesWithResponse(ctx, queue, forq.NewMessages{Messages: []forq.NewMessage{
		{Content: "two", Priority: &priority, Attributes: &attributes},
		{Content: "three"},
	}})
	check(err == nil && batch.JSON200 != nil, "batch: %v", err)
	for _, result := range batch.JSON200.Results {
		check(result.Id != nil && result.Code == nil, "stored: %v", result)
	}
}

func giveBack(ctx context.Context, client *forq.ClientWithResponses) {
	wait, full := 1000, forq.ReceiveMessageParamsXForqAnswerFull
	next, err := client.ReceiveMessageWithResponse(ctx, queue, &forq.ReceiveMessageParams{
		WaitMs: &wait, XForqAnswer: &full,
	})
	check(err == nil && next.JSON200 != nil, "next: %v", err)
	message, err := next.JSON200.AsReceivedMessage()
	check(err == nil && message.Content == "two" && message.Receipt != nil, "message: %v", err)
	receipt := &forq.NackMessageParams{XForqReceipt: message.Receipt}
	nacked, err := client.NackMessageWithResponse(ctx, queue, message.Id, receipt)
	check(err == nil && nacked.StatusCode() == 204, "nacked: %v", err)
	shown, err := client.ShowMessageWithResponse(ctx, queue, message.Id)
	check(err == nil && shown.JSON200 != nil, "shown: %v", err)
	check(shown.JSON200.LeaseUntil == nil && len(shown.JSON200.Failures) == 1, "shown: %v", shown.JSON200)
}

func receive(ctx context.Context, client *forq.ClientWithResponses) {
	most, wait := 10, 1000
	received, err := client.ReceiveMessagesWithResponse(ctx, queue, forq.ReceiveRequest{Max: &most, WaitMs: &wait})
	check(err == nil && received.JSON200 != nil, "received: %v", err)
	receipts := []string{}
	for _, message := range received.JSON200.Messages {
		receipts = append(receipts, *message.Receipt)
	}
	check(len(receipts) == 2, "receipts: %v", receipts)
	acked, err := client.AckMessagesWithResponse(ctx, queue, forq.AckRequest{Receipts: receipts})
	check(err == nil && acked.JSON200 != nil, "acked: %v", err)
	for _, result := range acked.JSON200.Results {
		check(result.Ok, "acked: %v", result)
	}
}

func list(ctx context.Context, client *forq.ClientWithResponses) {
	limit := 10
	queues, err := client.ListQueuesWithResponse(ctx, &forq.ListQueuesParams{Limit: &limit})
	check(err == nil && queues.JSON200 != nil, "queues: %v", err)
	check(len(queues.JSON200.Queues) == 1 && queues.JSON200.Next == nil, "queues: %v", queues.JSON200)
	found := queues.JSON200.Queues[0]
	check(found.Queue == queue && found.Delayed == 1 && found.OldestReadyAgeMs == nil, "queue: %v", found)
}

func refused(ctx context.Context, client *forq.ClientWithResponses) {
	refused, err := client.SendMessagesWithResponse(ctx, "orders-dlq", forq.NewMessages{Messages: []forq.NewMessage{}})
	check(err == nil && refused.JSON400 != nil, "refused: %v", err)
	check(refused.JSON400.Code == "bad_request.queue.produce_to_dlq", "refused: %v", refused.JSON400)
	unknown, err := client.ShowQueueWithResponse(ctx, "nobody")
	check(err == nil && unknown.JSON404 != nil, "unknown: %v", err)
	check(unknown.JSON404.Code == "not_found.queue" && *unknown.JSON404.Field == "queue", "unknown: %v", unknown.JSON404)
}

// A later server answers words that this document does not have. With a closed list these types would not be texts.
func ofALaterServer(ctx context.Context, client *forq.ClientWithResponses) {
	resting, err := client.ShowQueueWithResponse(ctx, queue)
	check(err == nil && resting.JSON200 != nil, "resting: %v", err)
	var level *string = resting.JSON200.Level
	check(level != nil && *level == "of_a_later_server", "resting: %v", resting.JSON200)
	gone, err := client.ShowQueueWithResponse(ctx, "nobody")
	check(err == nil && gone.JSON404 != nil, "gone: %v", err)
	var code string = gone.JSON404.Code
	check(code == "not_found.of_a_later_server", "gone: %v", gone.JSON404)
}
