-- Messages that wait for their full queue do not hold up others: a batch finds those of the other queues.
CREATE INDEX sent_by_queue ON sent (queue, id);
