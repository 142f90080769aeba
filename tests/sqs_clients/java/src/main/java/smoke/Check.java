package smoke;

import java.util.HashMap;
import java.util.Map;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;

/** What all programs need. */
final class Check {
    private Check() {}

    static void that(boolean holds, Object said) {
        if (!holds) throw new AssertionError(String.valueOf(said));
    }

    static String create(SqsClient sqs, String name, Map<QueueAttributeName, String> attributes) {
        return sqs.createQueue(asked -> asked.queueName(name).attributes(attributes)).queueUrl();
    }

    static Map<QueueAttributeName, String> attributes(SqsClient sqs, String url) {
        var answer = sqs.getQueueAttributes(asked -> asked.queueUrl(url).attributeNames(QueueAttributeName.ALL));
        return new HashMap<>(answer.attributes());
    }

    static void isEmpty(SqsClient sqs, String url) {
        var all = attributes(sqs, url);
        that("0".equals(all.get(QueueAttributeName.APPROXIMATE_NUMBER_OF_MESSAGES)), all);
        that("0".equals(all.get(QueueAttributeName.APPROXIMATE_NUMBER_OF_MESSAGES_NOT_VISIBLE)), all);
    }
}
