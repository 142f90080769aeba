// A producer and consumers, from the first message to an empty queue. The SDK compares the MD5 of every body.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  QueueDoesNotExist,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";
import { Producer } from "sqs-producer";

const MESSAGES = 25;
const sqs = new SQSClient({});

async function create(name, attributes = {}) {
  const made = await sqs.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }));
  return made.QueueUrl;
}

async function attributes(url) {
  const asked = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["All"] });
  return (await sqs.send(asked)).Attributes;
}

async function left(url) {
  const all = await attributes(url);
  const counts = ["", "NotVisible", "Delayed"].map((kind) => Number(all[`ApproximateNumberOfMessages${kind}`]));
  return counts.reduce((sum, each) => sum + each);
}

/** Starts a consumer, and returns when `enough` says so and the last of its messages is deleted. */
async function consume(options, enough) {
  const consumer = Consumer.create({ sqs, waitTimeSeconds: 20, suppressFifoWarning: true, ...options });
  await new Promise((resolve, reject) => {
    consumer.on("error", reject);
    consumer.on("timeout_error", reject);
    consumer.on("response_processed", () => enough() && resolve());
    consumer.start();
  });
  consumer.stop({ abort: true });
  if (consumer.status.isRunning) await once(consumer, "stopped");
}

async function batches() {
  const url = await create("orders");
  const producer = Producer.create({ queueUrl: url, sqs });
  const sent = Array.from({ length: MESSAGES }, (_, number) => ({
    id: `order-${number}`,
    body: `order ${number} über 日本 🎉 <&> "quoted"`,
    messageAttributes: {
      number: { DataType: "Number", StringValue: String(number) },
      bytes: { DataType: "Binary", BinaryValue: Uint8Array.of(0, 255, number) },
      kind: { DataType: "String.colour", StringValue: "rød" },
    },
  }));
  const results = await producer.send(sent);
  assert.equal(results.length, MESSAGES);
  assert.equal(await producer.queueSize(), MESSAGES);

  const bodies = new Set();
  const handleMessageBatch = async (messages) => {
    for (const message of messages) {
      const number = Number(message.MessageAttributes.number.StringValue);
      assert.deepEqual([...message.MessageAttributes.bytes.BinaryValue], [0, 255, number]);
      assert.equal(message.MessageAttributes.kind.DataType, "String.colour");
      assert.equal(message.Attributes.ApproximateReceiveCount, "1");
      bodies.add(message.Body);
    }
    return messages;
  };
  const asked = { messageAttributeNames: ["All"], messageSystemAttributeNames: ["All"], batchSize: 10 };
  await consume({ queueUrl: url, handleMessageBatch, ...asked }, () => bodies.size === MESSAGES);
  assert.deepEqual([...bodies].sort(), sent.map((each) => each.body).sort());
  assert.equal(await left(url), 0);
}

async function failures() {
  const graves = await create("graves");
  const { QueueArn } = await attributes(graves);
  const policy = JSON.stringify({ deadLetterTargetArn: QueueArn, maxReceiveCount: 3 });
  const url = await create("fragile", { RedrivePolicy: policy });
  await Producer.create({ queueUrl: url, sqs }).send(["good", "bad"]);

  const tries = { good: 0, bad: 0 };
  const handleMessage = async (message) => {
    tries[message.Body] += 1;
    if (message.Body === "bad") throw new Error("as it should");
    return message;
  };
  const enough = () => tries.good === 1 && tries.bad === 3;
  await consume({ queueUrl: url, handleMessage, terminateVisibilityTimeout: true }, enough);
  const buried = await sqs.send(new ReceiveMessageCommand({ QueueUrl: graves, WaitTimeSeconds: 20 }));
  assert.deepEqual(buried.Messages.map((each) => each.Body), ["bad"]);
  assert.deepEqual(tries, { good: 1, bad: 3 });
  assert.equal(await left(url), 0);
}

async function order() {
  const url = await create("steps.fifo", { FifoQueue: "true" });
  const producer = Producer.create({ queueUrl: url, sqs });
  const steps = Array.from({ length: 12 }, (_, number) => String(number));
  await producer.send(steps.map((step) => ({ id: step, body: step, groupId: "one", deduplicationId: step })));
  await producer.send({ id: "again", body: "0", groupId: "one", deduplicationId: "0" });
  const seen = [];
  const handleMessageBatch = async (messages) => {
    seen.push(...messages.map((each) => each.Body));
    return messages;
  };
  await consume({ queueUrl: url, handleMessageBatch, batchSize: 5 }, () => seen.length === steps.length);
  assert.deepEqual(seen, steps);
  assert.equal(await left(url), 0);
}

await batches();
await failures();
await order();
await assert.rejects(sqs.send(new GetQueueUrlCommand({ QueueName: "nowhere" })), QueueDoesNotExist);
console.log("alive");
