package smoke;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.ListQueuesRequest;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.QueueDoesNotExistException;

/** The SDK's batch manager: it gathers single calls into batches, and receives ahead. */
public final class Batches {
    private static final int MESSAGES = 35;

    private Batches() {}

    public static void main(String[] args) {
        try (var sqs = SqsClient.create(); var later = SqsAsyncClient.create()) {
            var url = Check.create(sqs, "orders", Map.of());
            try (var manager = later.batchManager()) {
                var sent = new ArrayList<CompletableFuture<?>>();
                for (int number = 0; number < MESSAGES; number++) {
                    var text = String.valueOf(number);
                    var attribute = MessageAttributeValue.builder().dataType("Number").stringValue(text).build();
                    sent.add(manager.sendMessage(asked -> asked
                        .queueUrl(url)
                        .messageBody("order über 日本 " + text)
                        .messageAttributes(Map.of("number", attribute))));
                }
                all(sent);

                var bodies = new HashSet<String>();
                var deleted = new ArrayList<CompletableFuture<?>>();
                while (bodies.size() < MESSAGES) {
                    var answer = manager.receiveMessage(asked -> asked.queueUrl(url).maxNumberOfMessages(10)).join();
                    for (var message : answer.messages()) {
                        bodies.add(message.body());
                        var handle = message.receiptHandle();
                        deleted.add(manager.deleteMessage(asked -> asked.queueUrl(url).receiptHandle(handle)));
                    }
                }
                all(deleted);
                Check.that(deleted.size() == MESSAGES, deleted.size());
            }
            Check.isEmpty(sqs, url);
            var pages = sqs.listQueuesPaginator(ListQueuesRequest.builder().maxResults(1).build());
            Check.that(pages.queueUrls().stream().toList().contains(url), url);
            try {
                sqs.getQueueUrl(asked -> asked.queueName("nowhere"));
                throw new AssertionError("a queue that is nowhere was found");
            } catch (QueueDoesNotExistException missing) {
                Check.that(missing.statusCode() == 400, missing);
            }
        }
        System.out.println("alive");
    }

    private static void all(List<CompletableFuture<?>> futures) {
        CompletableFuture.allOf(futures.toArray(CompletableFuture[]::new)).join();
    }
}
