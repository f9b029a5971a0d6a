"""MLflow tracking servers, through the mlflow client: `http(s)://host[:port][/prefix]`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradtrend.errors import InputError, MissingPackageError
from gradtrend.ingest.formats.mlflow.runs import add_point, reading_of
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, points_of
from gradtrend.ingest.reading.stored_runs import StoredRun, choose_run

_MAX_RUNS_SEARCHED = 2000  # the newest; an older one is found by its full id
_PAGE = 1000  # the most that servers give at once
# The client's own defaults (120 s, 7 tries with growing pauses) make a mistyped address cost minutes.
_CLIENT_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "15",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",  # reading a log must not report to anybody
}
# What the client raises for answers that are no MLflow server's.
_ODD_ANSWER = (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
_ADDRESS = re.compile(r"^(https?):/+(.+)$")
_FULL_ID = re.compile(r"^[0-9a-f]{32}$")


def claims(path: Path, head: bytes) -> bool:
    """Whether a path is the address of a server; `Path` turns `//` into `/`."""
    return _ADDRESS.match(path.as_posix()) is not None


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """One run. Raises InputError where the server does not answer or has no such run, MissingPackageError without the
    mlflow package.
    """
    address = _ADDRESS.sub(r"\1://\2", path.as_posix())
    with _client_settings():
        try:
            from google.protobuf.json_format import ParseError
            from mlflow import MlflowClient
            from mlflow.exceptions import MlflowException
        except ImportError as error:
            raise MissingPackageError(
                "reading an MLflow server needs the mlflow package", "pip install 'gradtrend[mlflow]'"
            ) from error
        try:
            client = MlflowClient(tracking_uri=address)
            run, notes = choose_run(_stored_runs(client, options.run_id), options.run_id, address)
            data = client.get_run(run.id).data
            series = points_of(_read_points(client, run.id, sorted(data.metrics)))
        except (MlflowException, ParseError, *_ODD_ANSWER) as error:
            raise InputError(f"cannot read from {address}: {reason(error)}", "Is this the server's address?") from error
    return (reading_of(path, run, series, data.params, notes),)


@contextmanager
def _client_settings() -> Iterator[None]:
    """The client's time-outs set where the user has not, and everything put back at the end."""
    added = {name: value for name, value in _CLIENT_SETTINGS.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _stored_runs(client: Any, wanted: str | None) -> list[StoredRun]:
    """The wanted run where its full id is given, else the newest runs of all experiments."""
    if wanted and _FULL_ID.match(wanted):
        from mlflow.exceptions import MlflowException

        try:
            return [_stored_run(client.get_run(wanted))]
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
    experiments = [experiment.experiment_id for experiment in _pages(client.search_experiments)]
    if not experiments:
        return []
    found = _pages(client.search_runs, experiment_ids=experiments, order_by=["attributes.start_time DESC"])
    return [_stored_run(run) for run, _ in zip(found, range(_MAX_RUNS_SEARCHED), strict=False)]


def _pages(search: Any, **options: Any) -> Iterator[Any]:
    """All results of a paged search."""
    token = None
    while True:
        page = search(max_results=_PAGE, page_token=token, **options)
        yield from page
        token = page.token
        if not token:
            return


def _stored_run(run: Any) -> StoredRun:
    """What the client says about a run."""
    return StoredRun(
        id=run.info.run_id,
        name=run.info.run_name or None,
        started=run.info.start_time / 1000 if run.info.start_time is not None else None,
        has_metrics=bool(run.data.metrics),
        deleted=run.info.lifecycle_stage == "deleted",
    )


def _read_points(client: Any, run: str, metrics: Sequence[str]) -> dict[str, Column]:
    """Every point of every metric; the server keeps no order within one millisecond."""
    columns: dict[str, Column] = {}
    for name in metrics:
        for metric in client.get_metric_history(run, name):
            value = float(metric.value) if metric.value is not None else math.nan
            add_point(columns, name, metric.step, value, metric.timestamp)
    return columns


def reason(error: Exception) -> str:
    """The heart of a client error: its messages nest connection errors many lines deep."""
    text = str(error)
    if "Max retries exceeded" in text or "Connection" in text or "timed out" in text:
        return "no answer"
    return text.splitlines()[0][:300] if text else type(error).__name__
