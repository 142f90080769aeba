"""Bounds that belong to no topic; `forq_trio.model.limits` has all bounds."""
