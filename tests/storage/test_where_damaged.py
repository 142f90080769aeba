"""Conditions on a message whose attributes are damaged."""

import pytest

from forq_trio.model.messages.where import where_of
from forq_trio.storage.relational.operations.where import _matches


@pytest.mark.parametrize("attributes", ["{", "[1]", '{"k": {}}'])
def test_damaged_attributes_match_so_that_the_message_is_delivered_and_set_aside(attributes: str) -> None:
    assert _matches(where_of({"k": "v"}), attributes)
    assert not _matches(where_of({"k": "v"}), '{"k": "w"}')
