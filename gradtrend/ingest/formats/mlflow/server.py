"""MLflow tracking servers, by their REST API: `http(s)://host[:port][/prefix]`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from http.client import HTTPException
from pathlib import Path
from typing import Any

from gradtrend.errors import InputError
from gradtrend.ingest.formats.mlflow import SERVER
from gradtrend.ingest.formats.mlflow.exchange import TooMuchError
from gradtrend.ingest.formats.mlflow.rest import Api, RefusedError, objects
from gradtrend.ingest.formats.mlflow.runs import add_point, reading_of
from gradtrend.ingest.limits import MOST_RUNS
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Columns, points_of
from gradtrend.ingest.reading.numbers import INT64_LIMIT
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns, newest
from gradtrend.model.runlog import Skipped

_RUNS_A_PAGE = 50  # a run has its last values and parameters with it: some 100 KB for one with a thousand layers
_EXPERIMENTS_A_PAGE = 1000  # the most that servers give at once
_EXPERIMENTS_A_SEARCH = 100
_POINTS_A_PAGE = 25_000
_THREADS = 8  # metrics asked for at a time: a server has a few workers, and the way there takes most of the time
_MOST_EXPERIMENTS_NAMED = 10
# What odd answers come to.
_ODD_ANSWER = (
    TooMuchError,
    HTTPException,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
)
_FULL_ID = re.compile(r"^[0-9a-f]{32}$")
_NO_SUCH_RUN = "RESOURCE_DOES_NOT_EXIST"
_PARENT = "mlflow.parentRunId"


def runs(path: Path, wanted: WantedRuns) -> list[StoredRun]:
    """The runs of a server: those whose full ids are wanted, the newest ones, or all of all experiments or one.

    Raises InputError where the server does not answer as one, or within limits.
    """
    with _server(path, lists=True) as api:
        if wanted.ids and all(_FULL_ID.match(run) for run in wanted.ids):
            found = [run for run_id in wanted.ids for run in _run_and_nested(api, run_id)]
            if {run.id for run in found} >= set(wanted.ids):
                return found
        names = _experiments(api, wanted.experiment)
        ids = list(names)
        stored: list[StoredRun] = []
        for first in range(0, len(ids), _EXPERIMENTS_A_SEARCH):
            stored += _searched(
                api, ids[first : first + _EXPERIMENTS_A_SEARCH], names, wanted.newest and not wanted.ids
            )
            if len(stored) > MOST_RUNS:
                raise InputError(
                    f"{api.address} holds more than {MOST_RUNS} runs",
                    "Pick some with --experiment, --run-id or --newest.",
                )
        return stored


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """One run. Raises InputError where the server does not answer as one, or within limits."""
    run = options.run or newest(runs(path, WantedRuns(newest=True)), str(path))
    with _server(path) as api:
        data = api.get("runs/get", {"run_id": run.id})["run"].get("data", {})
        metrics = sorted(str(metric["key"]) for metric in objects(data, "metrics"))
        params = {str(param["key"]): str(param.get("value", "")) for param in objects(data, "params")}
        skipped: list[Skipped] = []
        columns = Columns()
        with ThreadPoolExecutor(_THREADS) as pool:
            for metric, points in zip(metrics, pool.map(partial(_history, api, run.id), metrics), strict=True):
                _add_points(columns, metric, points, skipped)
        return (reading_of(path, run, points_of(columns), params, skipped),)


@contextmanager
def _server(path: Path, lists: bool = False) -> Iterator[Api]:
    """The API at an address. Raises InputError for all that goes wrong with it."""
    address = SERVER.sub(r"\1://\2", path.as_posix())
    shown = re.sub(r"//[^/@]*@", "//", address)  # without a password
    try:
        yield Api(address, lists)
    except RefusedError as error:
        raise InputError(f"cannot read from {shown}: {error}", error.hint) from error
    except _ODD_ANSWER as error:
        raise InputError(f"cannot read from {shown}: {reason(error)}", "Is this the server's address?") from error


def _run_and_nested(api: Api, run_id: str) -> list[StoredRun]:
    """The run of a full id, and those nested in it where it has no metrics itself; none where there is no such run."""
    try:
        found = api.get("runs/get", {"run_id": run_id})["run"]
    except RefusedError as error:
        if error.code == _NO_SUCH_RUN:
            return []
        raise
    run = _stored_run(found, {})
    if run.has_metrics:
        return [run]
    options = {"experiment_ids": [run.experiment[0]], "filter": f"tags.`{_PARENT}` = '{run_id}'"}
    return [run, *(one for page in _run_pages(api, options) for one in page)]


def _experiments(api: Api, wanted: str | None) -> dict[str, tuple[str, ...]]:
    """The names of each experiment by its id: of all, or of the wanted one. Raises InputError where there is none."""
    options = {"max_results": _EXPERIMENTS_A_PAGE}
    found: dict[str, tuple[str, ...]] = {}
    for page in api.pages(api.post, "experiments/search", "experiments", options):
        found |= {str(one["experiment_id"]): (str(one.get("name") or ""),) for one in page}
    if wanted is None:
        return found
    kept = {key: names for key, names in found.items() if wanted in (key, *names)}
    if kept:
        return kept
    import difflib

    by_name = {name: key for key, names in found.items() for name in names}
    near = difflib.get_close_matches(wanted, by_name, cutoff=0.4) or list(by_name)[:_MOST_EXPERIMENTS_NAMED]
    hint = "It has: " + ", ".join(f"{name} ({by_name[name]})" for name in near) if near else "It has none."
    raise InputError(f"no experiment {wanted} on {api.address}", hint)


def _searched(api: Api, ids: Sequence[str], names: Mapping[str, tuple[str, ...]], only_newest: bool) -> list[StoredRun]:
    """The runs of some experiments, newest first; if asked so, to the first page with one that has metrics."""
    found: list[StoredRun] = []
    for page in _run_pages(api, {"experiment_ids": ids, "order_by": ["attributes.start_time DESC"]}, names):
        found += page
        if len(found) > MOST_RUNS or (only_newest and any(run.has_metrics for run in page)):
            break
    return found


def _run_pages(
    api: Api, options: Mapping[str, Any], names: Mapping[str, tuple[str, ...]] | None = None
) -> Iterator[list[StoredRun]]:
    for page in api.pages(api.post, "runs/search", "runs", {"max_results": _RUNS_A_PAGE, **options}):
        yield [_listed_run(run, names or {}, place) for place, run in enumerate(page)]


def _listed_run(run: Mapping[str, Any], names: Mapping[str, tuple[str, ...]], place: int) -> StoredRun:
    """A run as a list has it; one that is not whole stays one, so that it is told and loses none of the others."""
    try:
        return _stored_run(run, names)
    except _ODD_ANSWER:
        return StoredRun(f"run {place} of a list, which is not whole", name=None, started=None, has_metrics=True)


def _stored_run(run: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> StoredRun:
    """What a server says about a run."""
    info, data = run["info"], run.get("data", {})
    tags = {str(tag["key"]): str(tag.get("value", "")) for tag in objects(data, "tags")}
    experiment, started = str(info.get("experiment_id", "")), info.get("start_time")
    return StoredRun(
        id=str(info.get("run_id") or info["run_uuid"]),
        name=str(info.get("run_name") or tags.get("mlflow.runName") or "") or None,
        started=_seconds(started),
        has_metrics=bool(data.get("metrics")),
        deleted=info.get("lifecycle_stage") == "deleted",
        experiment=(experiment, *names.get(experiment, ())),
        parent=tags.get(_PARENT, ""),
        state=blake2b(json.dumps(run, sort_keys=True).encode(), digest_size=16).hexdigest(),
    )


def _seconds(milliseconds: Any) -> float | None:
    try:
        return float(milliseconds) / 1000
    except (TypeError, ValueError, OverflowError):
        return None


def _history(api: Api, run: str, metric: str) -> list[dict[str, Any]]:
    """Every point of a metric; the server keeps no order within one millisecond."""
    options = {"run_id": run, "metric_key": metric, "max_results": _POINTS_A_PAGE}
    return [point for page in api.pages(api.get, "metrics/get-history", "metrics", options) for point in page]


def _add_points(columns: Columns, metric: str, points: Sequence[Mapping[str, Any]], skipped: list[Skipped]) -> None:
    for point in points:
        try:  # protobuf's JSON has whole numbers, NaN and infinity as strings
            step, time = int(point.get("step", 0)), int(point.get("timestamp", 0))
            value = float(point.get("value", math.nan))
        except (TypeError, ValueError, OverflowError):
            skipped.append(Skipped(f"metric {metric}: {str(dict(point))[:100]} is no point"))
            continue
        if max(abs(step), abs(time)) < INT64_LIMIT:
            add_point(columns, metric, step, value, time)


def reason(error: Exception) -> str:
    """The heart of an error of the connection."""
    if isinstance(error, TimeoutError | ConnectionError):
        return "no answer"
    text = str(error)
    return text.splitlines()[0][:300] if text else type(error).__name__
