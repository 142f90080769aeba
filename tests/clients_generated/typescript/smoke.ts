// What a program does with the generated client: send, receive, ack, nack, list, and an error with its code.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./forq.js";

const headers = { "X-API-Key": process.env["FORQ_AUTH_SECRET"] ?? "" };
const client = createClient<paths>({ baseUrl: process.env["FORQ_URL"] ?? "", headers });
const path = { queue: "orders" };

const sent = await client.POST("/api/v1/queues/{queue}/messages", {
  params: { path },
  body: { content: "one sofa" },
});
assert.equal(sent.response.status, 204);

const batch = await client.POST("/api/v1/queues/{queue}/messages/batch", {
  params: { path },
  body: { messages: [{ content: "two", priority: 500, attributes: { colour: "red" } }, { content: "three" }] },
});
const stored: components["schemas"]["SendResult"][] = batch.data?.results ?? [];
assert.equal(stored.filter((each) => each.id !== undefined && each.code === undefined).length, 2);

const next = await client.GET("/api/v1/queues/{queue}/messages", {
  params: { path, query: { waitMs: 1_000 }, header: { "X-Forq-Answer": "full" } },
});
assert.equal(next.response.status, 200);
assert.equal(next.data?.content, "two");
assert.ok(next.data.receipt);
const nacked = await client.POST("/api/v1/queues/{queue}/messages/{messageId}/nack", {
  params: { path: { ...path, messageId: next.data.id }, header: { "X-Forq-Receipt": next.data.receipt } },
});
assert.equal(nacked.response.status, 204);

const received = await client.POST("/api/v1/queues/{queue}/messages/receive", {
  params: { path },
  body: { max: 10, waitMs: 1_000 },
});
const messages: components["schemas"]["ReceivedMessage"][] = received.data?.messages ?? [];
assert.deepEqual(messages.map((each) => each.content), ["one sofa", "three"]);
const receipts = messages.map((each) => each.receipt ?? "");

const acked = await client.POST("/api/v1/queues/{queue}/messages/ack", { params: { path }, body: { receipts } });
assert.deepEqual(acked.data?.results.map((each) => each.ok), [true, true]);

const shown = await client.GET("/api/v1/queues/{queue}/messages/{messageId}", {
  params: { path: { ...path, messageId: next.data.id } },
});
const until: number | null | undefined = shown.data?.leaseUntil;
assert.equal(until, null);
assert.equal(shown.data?.failures.length, 1);

const queues = await client.GET("/api/v1/queues", { params: { query: { limit: 10 } } });
const found = queues.data?.queues.map((each) => [each.queue, each.delayed, each.oldestReadyAgeMs] as const);
assert.deepEqual(found, [["orders", 1, null]]);
assert.equal(queues.data?.next, null);

const changed = await client.PUT("/api/v1/queues/{queue}/settings", {
  params: { path },
  body: { maxAttempts: 10, ttlMs: null, backOff: { initialMs: 500 } },
});
assert.equal(changed.data?.effective.maxAttempts, 10);

const opened = await client.PUT("/api/v1/queues/{queue}/consumers/{consumer}", {
  params: { path: { ...path, consumer: "archive" } },
});
assert.equal(opened.data?.generation, 1);

const refused = await client.POST("/api/v1/queues/{queue}/messages/batch", {
  params: { path: { queue: "orders-dlq" } },
  body: { messages: [] },
});
assert.equal(refused.response.status, 400);
switch (refused.error?.code) {
  case "bad_request.queue.produce_to_dlq":
    break;
  default:
    assert.fail(refused.error?.code);
}

const unknown = await client.GET("/api/v1/queues/{queue}", { params: { path: { queue: "nobody" } } });
assert.equal(unknown.error?.code, "not_found.queue");
assert.equal(unknown.error?.field, "queue");

// A later server answers words that this document does not have. Against a closed list these lines would not compile.
const later = createClient<paths>({ baseUrl: process.env["FORQ_LATER_URL"] ?? "", headers });
const resting = await later.GET("/api/v1/queues/{queue}", { params: { path } });
if (resting.data?.level !== "of_a_later_server") assert.fail(resting.data?.level ?? "none");
const gone = await later.GET("/api/v1/queues/{queue}", { params: { path: { queue: "nobody" } } });
if (gone.error?.code !== "not_found.of_a_later_server") assert.fail(gone.error?.code);
