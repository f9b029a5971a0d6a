"""A running Dask cluster as the engine of a scan."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from gradtrend.errors import ConfigError, GradtrendError
from gradtrend.pipeline.scan.engines import Engine, elsewhere

_SECONDS_TO_CONNECT = 5.0  # a scheduler that is there answers within one
_HINT = "Give the address that `dask scheduler` prints, such as tcp://host:8786."


@contextmanager
def dask_cluster(address: str) -> Iterator[Engine]:
    """The workers of the scheduler at an address, which does again what is lost with one of them.

    Raises `ConfigError` where the package is missing, and where no scheduler answers; `GradtrendError` where it has no
    workers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ConfigError("--engine dask needs the package distributed", "pip install 'gradtrend[dask]'") from error
    try:
        asyncio.run(_call(address))
        client = Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"--scheduler {address}: no Dask scheduler answers ({why})", _HINT) from error
    with client:
        if not client.nthreads():
            raise GradtrendError(f"--scheduler {address}: it has no workers", f"Start some: dask worker {address}")
        with client.get_executor(pure=False) as executor:
            yield elsewhere(executor)


async def _call(address: str) -> None:
    """Connect, and no more: a client that finds nobody is heard of again half a minute later, when it is let go of.

    Raises OSError where nobody answers, ValueError for what is no address.
    """
    from distributed import Security
    from distributed.comm.core import connect

    arguments = Security().get_connection_args("client")
    comm = await connect(address, timeout=_SECONDS_TO_CONNECT, **arguments)
    await comm.close()
