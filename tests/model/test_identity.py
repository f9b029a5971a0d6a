from __future__ import annotations

import pytest

from gradtrend.model.finding import Finding
from gradtrend.model.identity import below, fingerprint, stable_name
from gradtrend.model.words import Severity


@pytest.mark.parametrize(
    ("run", "name"),
    [
        ("out/run", "out/run"),
        ("./out/run/", "out/run"),
        ("/home/me/project/out/run", "out/run"),
        ("/home/me/project", "."),
        (".", "."),
        ("/home/me/project2/out/run", "out/run"),
        ("/data/exp/version_0", "exp/version_0"),
        ("../other/out/run", "out/run"),
        ("train.log#2", "train.log#2"),
        ("mlflow.db/3f2a", "mlflow.db/3f2a"),
        ("http://me:secret@host:5000/#/runs/1", "http://host:5000/#/runs/1"),
        ("s3://bucket/runs/a", "s3://bucket/runs/a"),
        ("abfss://box@account.dfs.core.windows.net/a", "abfss://box@account.dfs.core.windows.net/a"),
        ("/", ""),
    ],
)
def test_a_name_is_that_of_every_checkout(run: str, name: str) -> None:
    assert stable_name(run, "/home/me/project") == name


def test_without_a_working_folder_a_path_from_it_stays() -> None:
    assert stable_name("out/run", "") == "out/run"
    assert stable_name("../a/b/c", "") == "b/c"
    assert below("/a/b", "") is None


def test_a_folder_of_a_similar_name_is_another() -> None:
    assert below("/srv/project2/a", "/srv/project") is None
    assert below("/a", "/") == "a"


def _finding(**changes: object) -> Finding:
    fields = {"rule": "GT101", "name": "x", "severity": Severity.ERROR, "confidence": 0.9, "message": "m"} | changes
    return Finding(**fields)  # type: ignore[arg-type]


def test_a_fingerprint_knows_rule_metric_and_layer_but_no_step() -> None:
    mark = fingerprint("run", _finding(metric="norm"))
    assert mark == fingerprint("run", _finding(metric="norm", first_step=9, message="other", confidence=0.1))
    others = [_finding(metric="norm", layer="l"), _finding(metric="loss"), _finding(rule="GT102", metric="norm")]
    assert len({mark, fingerprint("run2", _finding(metric="norm")), *(fingerprint("run", one) for one in others)}) == 5


def test_a_name_of_no_characters_has_a_fingerprint() -> None:
    assert len(fingerprint("run\udcff\ud800", _finding(metric="\x00"))) == 32
