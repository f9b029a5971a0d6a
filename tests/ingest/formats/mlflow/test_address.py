"""MLflow's addresses as its pages and logs print them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradtrend.errors import InputError
from gradtrend.ingest.formats.mlflow.address import address_of
from gradtrend.ingest.reading.stored_runs import WantedRuns

ID = "0123456789abcdef" * 2
OTHER = ID[::-1]
SERVER = "http://host:5000"


@pytest.mark.parametrize(
    "page", ["", "/model-metrics", "/system-metrics", "/artifacts", "/artifacts/model/MLmodel", "?a=b"]
)
@pytest.mark.parametrize("server", [SERVER, "https://user@host/prefix", f"{SERVER}/"])
@pytest.mark.parametrize(
    "middle", ["#/experiments/1", "/#/experiments/1", "/?o=12#/experiments/1", "/#/workspaces/w/experiments/1"]
)
def test_a_run_s_page(server: str, middle: str, page: str) -> None:
    address = address_of(f"{server.rstrip('/')}{middle}/runs/{ID}{page}")
    assert address is not None
    assert (address.place, address.wanted) == (server.rstrip("/"), WantedRuns((ID,)))


@pytest.mark.parametrize(
    ("text", "place", "wanted"),
    [
        (f"{SERVER}/#/experiments/12", SERVER, WantedRuns(experiment="12")),
        (f"{SERVER}/#/experiments/12?searchFilter=&orderByKey=x", SERVER, WantedRuns(experiment="12")),
        (f"{SERVER}/#/experiments/12/runs?o=x", SERVER, WantedRuns(experiment="12")),
        (f"{SERVER}/#/", SERVER, WantedRuns()),
        (SERVER, SERVER, WantedRuns()),
        (f'{SERVER}/#/compare-runs?runs=%5B%22{ID}%22,"{OTHER}"]&experiments=["1"]', SERVER, WantedRuns((ID, OTHER))),
        (f"https://dbc.example.com/ml/experiments/12/runs/{ID}?o=1", "https://dbc.example.com", WantedRuns((ID,))),
        ("sqlite:///mlflow.db", "mlflow.db", WantedRuns()),
        ("sqlite:////srv/a b/mlflow.db?timeout=5", "/srv/a b/mlflow.db", WantedRuns()),
        ("file:///srv/mlruns", "/srv/mlruns", WantedRuns()),
        ("file://localhost/srv/my%20runs", "/srv/my runs", WantedRuns()),
        ("file:mlruns", "mlruns", WantedRuns()),
        ("file:./mlruns", "./mlruns", WantedRuns()),
        ("file:///C:/mlruns", "C:/mlruns", WantedRuns()),
    ],
)  # fmt: skip
def test_other_addresses(text: str, place: str, wanted: WantedRuns) -> None:
    address = address_of(text)
    assert address is not None
    assert (address.place, address.wanted) == (place, wanted)


@pytest.mark.parametrize("text", [f"runs:/{ID}", f"runs:/{ID}/model/data", f"mlflow-artifacts:/3/{ID}/artifacts"])
@pytest.mark.parametrize(
    ("uri", "place"), [("http://other", "http://other"), ("sqlite:///x.db", "x.db"), ("a/b", "a/b")]
)
def test_a_run_of_the_environment_s_store(monkeypatch: pytest.MonkeyPatch, text: str, uri: str, place: str) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    address = address_of(text)
    assert address is not None
    assert (address.place, address.wanted) == (place, WantedRuns((ID,)))


def test_without_the_environment_where_mlflow_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="of which store") as caught:
        address_of(f"runs:/{ID}")
    assert "MLFLOW_TRACKING_URI" in (caught.value.hint or "")
    (tmp_path / "mlruns").mkdir()
    address = address_of(f"runs:/{ID}")
    assert address is not None
    assert address.place == "mlruns"


@pytest.mark.parametrize("text", ["postgresql://u:p@h/db", "mysql+pymysql://h/db", "databricks://profile"])
def test_what_a_server_alone_can_read(text: str) -> None:
    with pytest.raises(InputError, match="not read directly"):
        address_of(text)


@pytest.mark.parametrize("text", ["a:b", "run:1", "s3://bucket/x", "C:/mlruns"])
def test_what_is_none(text: str) -> None:
    assert address_of(text) is None
