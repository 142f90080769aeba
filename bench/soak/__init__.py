"""The soak: mixed load on a real server for half an hour, one record a second, and a verdict on what must not grow.

Everything that is sent is consumed, expires, or is removed by a bound, so nothing grows by design. Anything that grows
nevertheless is a leak. `run` controls the soak: `traffic`, `sasquatch` and `caretaker` are the clients, `watch`
observes the server from outside, `record` stores the seconds, `verdict` judges them, `plot` draws them.
"""
