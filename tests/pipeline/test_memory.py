"""Errors for want of memory are known, also where C code does not say so."""

from __future__ import annotations

import errno

import pytest

from gradtrend.pipeline import memory


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(errno.ENOMEM, "no memory"), RuntimeError("can't start new thread")]
)
def test_these_are(error: Exception) -> None:
    assert memory.lacks_memory(error)


@pytest.mark.parametrize("error", [SystemError("error return without exception set"), ImportError("half a library")])
@pytest.mark.parametrize("limit", [1 << 28, None])
def test_these_are_where_memory_is_limited(
    error: Exception, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "memory_limit", lambda: limit)
    assert memory.lacks_memory(error) is (limit is not None)


def test_a_bug_is_not() -> None:
    assert not memory.lacks_memory(ZeroDivisionError("division by zero"))
