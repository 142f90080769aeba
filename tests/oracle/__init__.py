"""The reference model: the engine of plain dicts that every other engine is compared with. For tests."""
