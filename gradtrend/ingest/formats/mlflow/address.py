"""MLflow's own addresses, as its pages and logs print them -> the place of a store, and the runs meant."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gradtrend.errors import InputError
from gradtrend.ingest.reading import Address
from gradtrend.ingest.reading.stored_runs import WantedRuns

# What a server's own pages have behind its address; some put it behind `#/`, and workspaces something before it.
_PAGE = re.compile(
    r"^(?P<server>https?://.*?)/?(?:\?[^#]*)?(?:/ml)?(?:#/|/#/|/(?=(?:ml/)?experiments/\d))(?P<page>.*)$"
)
_EXPERIMENT = re.compile(r"(?:^|/)experiments/([^/?#&]+)")
_RUN = re.compile(r"(?:^|/)runs/([^/?#&]+)")
_COMPARED = re.compile(r"(?:^|/)compare-runs\?(.*)")
_ID = re.compile(r"[0-9a-f]{32}")
_OTHER_DATABASES = ("postgresql", "mysql", "mssql", "databricks")
_DEFAULTS = ("mlflow.db", "mlruns")  # where MLflow looks that was told nothing


def address_of(text: str) -> Address | None:
    """What an address means, None where it is none of MLflow's.

    Raises InputError where it means a store that only a server can read, or where nothing says which store.
    """
    scheme = text.partition(":")[0].lower()
    if scheme in ("http", "https"):
        return _of_page(text)
    if scheme == "file":
        return Address(_path_of_file(text))
    if scheme == "sqlite":
        return Address(_path_of_sqlite(text))
    if scheme in ("runs", "mlflow-artifacts"):
        return _of_run(text)
    if scheme.partition("+")[0] in _OTHER_DATABASES:
        raise InputError(f"{text}: not read directly", "Give the http(s) address of the tracking server before it.")
    return None


def _of_page(text: str) -> Address:
    found = _PAGE.match(text)
    if found is None:
        return Address(text)
    page = unquote(found["page"])
    compared = _COMPARED.search(page)
    if compared is not None:
        return Address(found["server"], WantedRuns(tuple(dict.fromkeys(_ID.findall(compared[1].partition("&exp")[0])))))
    run, experiment = _RUN.search(page), _EXPERIMENT.search(page)
    if run is not None:
        return Address(found["server"], WantedRuns((run[1],)))
    return Address(found["server"], WantedRuns(experiment=experiment[1] if experiment is not None else None))


def _of_run(text: str) -> Address:
    """`runs:/ID/path`, `mlflow-artifacts:/EXPERIMENT/ID/artifacts`: of the store that the environment names."""
    path = urlsplit(text).path
    parts = [part for part in path.split("/") if part]
    place = parts[0] if text.startswith("runs") and parts else next((part for part in parts if _ID.fullmatch(part)), "")
    if not place:
        raise InputError(f"{text}: names no run", "Give runs:/ID.")
    return Address(_tracking_place(text), WantedRuns((place,)))


def _tracking_place(text: str) -> str:
    """The place of the store of MLFLOW_TRACKING_URI, else where MLflow looks."""
    uri = os.environ.get("MLFLOW_TRACKING_URI", "").strip()
    if uri:
        address = address_of(uri) if ":" in uri else None
        return uri if address is None else address.place
    place = next((name for name in _DEFAULTS if Path(name).exists()), None)
    if place is None:
        raise InputError(f"{text}: of which store?", "Set MLFLOW_TRACKING_URI, or give the store and --run-id.")
    return place


def _path_of_file(text: str) -> str:
    path = unquote(re.sub(r"^file:(?://(?:localhost)?(?=/)|//)?", "", text, flags=re.IGNORECASE))
    return re.sub(r"^/+(?=[A-Za-z]:)", "", path) or "."  # a drive of Windows


def _path_of_sqlite(text: str) -> str:
    path = re.sub(r"^sqlite:(?:///)?", "", text.partition("?")[0], flags=re.IGNORECASE)
    return unquote(path)
