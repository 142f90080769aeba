package smoke;

import io.awspring.cloud.sqs.annotation.SqsListener;
import io.awspring.cloud.sqs.operations.SqsTemplate;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.messaging.handler.annotation.Header;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;

/** Spring Cloud AWS: a template sends, listeners handle; one fails on each message that is bad. */
@SpringBootApplication
public class Listener {
    private static final int MESSAGES = 20;
    private static final Set<String> HANDLED = ConcurrentHashMap.newKeySet();
    private static final CountDownLatch LEFT = new CountDownLatch(MESSAGES);
    private static final CountDownLatch BURIED = new CountDownLatch(1);
    private static final AtomicInteger TRIES = new AtomicInteger();

    public record Order(int number, String text) {}

    @SqsListener("orders")
    void handle(Order order, @Header("colour") String colour) {
        Check.that("rød".equals(colour), colour);
        if (HANDLED.add(order.number() + order.text())) LEFT.countDown();
    }

    @SqsListener("fragile")
    void fail(String body) {
        TRIES.incrementAndGet();
        throw new IllegalStateException("as it should: " + body);
    }

    @SqsListener("graves")
    void bury(String body) {
        BURIED.countDown();
    }

    public static void main(String[] args) throws InterruptedException {
        try (var sqs = SqsClient.create()) {
            var orders = Check.create(sqs, "orders", Map.of());
            var graves = Check.create(sqs, "graves", Map.of());
            var arn = Check.attributes(sqs, graves).get(QueueAttributeName.QUEUE_ARN);
            var policy = "{\"deadLetterTargetArn\":\"" + arn + "\",\"maxReceiveCount\":3}";
            var fragile = Check.create(sqs, "fragile", Map.of(
                QueueAttributeName.REDRIVE_POLICY, policy, QueueAttributeName.VISIBILITY_TIMEOUT, "1"));
            try (var context = SpringApplication.run(Listener.class, args)) {
                var template = context.getBean(SqsTemplate.class);
                for (int number = 0; number < MESSAGES; number++) {
                    var order = new Order(number, "über 日本");
                    template.send(to -> to.queue("orders").payload(order).header("colour", "rød"));
                }
                template.send("fragile", "bad");
                Check.that(LEFT.await(60, TimeUnit.SECONDS), HANDLED);
                Check.that(BURIED.await(60, TimeUnit.SECONDS), TRIES);
            }
            Check.that(TRIES.get() == 3, TRIES);
            for (var url : List.of(orders, fragile, graves)) Check.isEmpty(sqs, url);
        }
        System.out.println("alive");
    }
}
