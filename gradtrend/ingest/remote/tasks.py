"""Requests at the same time, few enough for a server, and no longer than a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from gradtrend.errors import InputError

_T = TypeVar("_T")


def finished(work: Coroutine[Any, Any, _T], seconds: float, what: str) -> _T:
    """The outcome of some requests. Raises InputError, which says `what` was not done, after so many seconds."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_within(work, seconds, what))
    from concurrent.futures import ThreadPoolExecutor  # a notebook's cell runs in a loop, which has no second in it

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _within(work, seconds, what)).result()


async def _within(work: Coroutine[Any, Any, _T], seconds: float, what: str) -> _T:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise InputError(f"{what} within {seconds:.0f} s", "Give a folder further down, or copy it here.") from error


async def at_once(count: int, work: Callable[[_T], Awaitable[None]], items: Iterable[_T]) -> None:
    """`work` of each item, of so many at the same time."""
    left = iter(items)

    async def take() -> None:
        for item in left:
            await work(item)

    await asyncio.gather(*(take() for _ in range(count)))
