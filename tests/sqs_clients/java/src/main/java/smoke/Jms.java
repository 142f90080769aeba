package smoke;

import com.amazon.sqs.javamessaging.ProviderConfiguration;
import com.amazon.sqs.javamessaging.SQSConnectionFactory;
import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;

/** JMS: texts, bytes and properties; a message that nobody acknowledged comes again; groups in order. */
public final class Jms {
    private static final long WAIT_MILLIS = 30_000;

    private Jms() {}

    public static void main(String[] args) throws JMSException {
        try (var sqs = SqsClient.create()) {
            var soon = Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "2");
            var orders = Check.create(sqs, "orders", Map.of());
            var fragile = Check.create(sqs, "fragile", soon);
            var steps = Check.create(sqs, "steps.fifo", Map.of(
                QueueAttributeName.FIFO_QUEUE, "true", QueueAttributeName.CONTENT_BASED_DEDUPLICATION, "true"));
            var factory = new SQSConnectionFactory(new ProviderConfiguration(), sqs);
            try (var connection = factory.createConnection()) {
                connection.start();
                texts(connection.createSession(false, Session.AUTO_ACKNOWLEDGE));
                again(connection.createSession(false, Session.CLIENT_ACKNOWLEDGE));
                order(connection.createSession(false, Session.AUTO_ACKNOWLEDGE));
                connection.stop(); // so that the last receives of all consumers, of 20 s each, end at the same time
            }
            Check.isEmpty(sqs, orders);
            Check.isEmpty(sqs, fragile);
            Check.isEmpty(sqs, steps);
        }
        System.out.println("alive");
    }

    private static void texts(Session session) throws JMSException {
        var queue = session.createQueue("orders");
        var text = session.createTextMessage("order über 日本");
        text.setIntProperty("number", 7);
        text.setStringProperty("colour", "rød");
        var bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, -1, 7});
        var producer = session.createProducer(queue);
        var consumer = session.createConsumer(queue);
        producer.send(text);
        var received = (TextMessage) consumer.receive(WAIT_MILLIS);
        Check.that("order über 日本".equals(received.getText()), received);
        Check.that(received.getIntProperty("number") == 7, received);
        Check.that("rød".equals(received.getStringProperty("colour")), received);
        producer.send(bytes);
        var three = (BytesMessage) consumer.receive(WAIT_MILLIS);
        Check.that(three.getBodyLength() == 3, three);
    }

    private static void again(Session session) throws JMSException {
        var queue = session.createQueue("fragile");
        var producer = session.createProducer(queue);
        var consumer = session.createConsumer(queue);
        producer.send(session.createTextMessage("twice"));
        Check.that(!consumer.receive(WAIT_MILLIS).getJMSRedelivered(), "the first time");
        var second = consumer.receive(WAIT_MILLIS);
        Check.that(second.getJMSRedelivered(), second);
        second.acknowledge();
    }

    private static void order(Session session) throws JMSException {
        var queue = session.createQueue("steps.fifo");
        var seen = new ArrayList<String>();
        var producer = session.createProducer(queue);
        var consumer = session.createConsumer(queue);
        for (var step : List.of("a", "b", "c", "d", "e")) {
            var message = session.createTextMessage(step);
            message.setStringProperty("JMSXGroupID", "one");
            producer.send(message);
        }
        for (int number = 0; number < 5; number++) seen.add(((TextMessage) consumer.receive(WAIT_MILLIS)).getText());
        Check.that(seen.equals(List.of("a", "b", "c", "d", "e")), seen);
    }
}
