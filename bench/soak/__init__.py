"""The soak: mixed load on a real server for half an hour, one record a second, and a verdict on what must not grow.

Everything that is sent is consumed, expires, or is removed by a bound, so nothing grows by design. What grows all the
same is a leak. `run` holds it all together: `traffic`, `sasquatch` and `caretaker` are the clients, `watch` looks at
the server from outside, `record` keeps the seconds, `verdict` judges them, `plot` draws them.
"""
