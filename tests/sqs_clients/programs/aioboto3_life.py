"""aioboto3: producers and consumers at once, in one event loop, to an empty queue."""

import asyncio

import aioboto3

MESSAGES = 60


async def main() -> None:
    session = aioboto3.Session()
    async with session.client("sqs") as sqs, session.resource("sqs") as resource:
        url = (await sqs.create_queue(QueueName="orders"))["QueueUrl"]
        seen: set[str] = set()
        done = asyncio.Event()

        async def produce(first: int) -> None:
            entries = [
                {"Id": str(number), "MessageBody": f"order {number}"} for number in range(first, first + 10)
            ]
            sent = await sqs.send_message_batch(QueueUrl=url, Entries=entries)
            assert len(sent["Successful"]) == 10, sent

        async def consume() -> None:
            while not done.is_set():
                asked = {"QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 20}
                received = await sqs.receive_message(**asked, MessageSystemAttributeNames=["All"])
                for message in received.get("Messages", []):
                    assert message["Attributes"]["ApproximateReceiveCount"] == "1", message
                    await sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                    seen.add(message["Body"])
                if len(seen) == MESSAGES:
                    done.set()

        consumers = [asyncio.create_task(consume()) for _ in range(3)]
        await asyncio.gather(*(produce(first) for first in range(0, MESSAGES, 10)))
        await done.wait()
        for each in consumers:
            each.cancel()  # while it waits for a message
        await asyncio.gather(*consumers, return_exceptions=True)
        queue = await resource.get_queue_by_name(QueueName="orders")
        counts = await queue.attributes
        assert (
            counts["ApproximateNumberOfMessages"] == counts["ApproximateNumberOfMessagesNotVisible"] == "0"
        ), counts
        pages = [
            page async for page in sqs.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 1})
        ]
        assert [page.get("QueueUrls") for page in pages] == [[url]], pages


asyncio.run(main())
print("alive")
