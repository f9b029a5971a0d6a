from __future__ import annotations

import pytest

from gradtrend.ingest.files.protobuf import fields, whole_fields

SOUND = b"\x08\x96\x01" + b"\x12\x03abc"  # 1: 150, 2: "abc"


def test_fields_lie_where_the_message_says() -> None:
    assert list(fields(SOUND, 0, len(SOUND))) == [(1, 0, 1, 3), (2, 2, 5, 8)]
    assert whole_fields(SOUND) == [(1, 150), (2, b"abc")]


@pytest.mark.parametrize(
    "damage",
    [b"\x18", b"\x18\x96", b"\x1a\x05abcd", b"\x1d\x00", b"\x1b", b"\x96", b"\x18" + b"\xff" * 10],
    ids=["no content", "cut number", "cut content", "cut float", "unknown type", "cut key", "endless number"],
)
def test_fields_raise_at_damage_and_whole_fields_end_there(damage: bytes) -> None:
    message = SOUND + damage
    found = fields(message, 0, len(message))
    assert [next(found)[0], next(found)[0]] == [1, 2]
    with pytest.raises(ValueError, match=r"broken|longer|unknown"):
        next(found)
    assert whole_fields(message) == whole_fields(SOUND)
