-- wrk script: POST one JSON message whose body is 200 bytes, the request all transport measurements use.
wrk.method = "POST"
wrk.path = "/api/v1/queues/bench/messages"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["X-API-Key"] = string.rep("k", 32)
wrk.body = '{"content":"' .. string.rep("x", 186) .. '"}'
