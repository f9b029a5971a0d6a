"""A server that answers without end, in drops, in circles or not at all is left within limits, and said so."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gradtrend.errors import InputError
from gradtrend.ingest.formats.mlflow import exchange, rest, server
from gradtrend.ingest.reading import ReadOptions
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns

Handler = BaseHTTPRequestHandler
Answers = Callable[[Handler, str], None]
RUN = {
    "info": {"run_id": "a" * 32, "experiment_id": "0", "lifecycle_stage": "active"},
    "data": {"metrics": [{"key": "n"}]},
}
NUMBERS = count(1)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def tell(handler: Handler, answer: object, status: int = 200) -> None:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def serving(answers: Answers) -> Iterator[Path]:
    """The address of a server that answers so, by the last words of what is asked."""

    class Server(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                answers(self, urlsplit(self.path).path.partition("/api/2.0/mlflow/")[2])
            except OSError:
                return

        do_POST = do_GET  # noqa: N815  the name that the server looks for

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        running.daemon_threads = True
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield Path(f"http://127.0.0.1:{running.server_port}")
        running.shutdown()


def drops(handler: Handler, what: str) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while True:
        handler.wfile.write(b" ")
        time.sleep(0.05)


def drops_in_the_head(handler: Handler, what: str) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        handler.wfile.write(b"y")
        time.sleep(0.05)


def without_end(handler: Handler, what: str) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b'{"experiment_id": "1"},' * 1000)


def one_page(handler: Handler, what: str) -> None:
    tell(handler, {"experiments": [], "next_page_token": "t"})


def new_pages(handler: Handler, what: str) -> None:
    number = next(NUMBERS)
    tell(handler, {"experiments": [{"experiment_id": str(number)}], "next_page_token": f"t{number}"})


def new_runs(handler: Handler, what: str) -> None:
    experiments = {"experiments": [{"experiment_id": "0"}]}
    runs = {"runs": [RUN] * 50, "next_page_token": f"t{next(NUMBERS)}"}
    tell(handler, experiments if what.startswith("experiments") else runs)


def elsewhere(handler: Handler, what: str) -> None:
    handler.send_response(302)
    handler.send_header("Location", "https://login.example.com/")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def nested(handler: Handler, what: str) -> None:
    tell(handler, b'{"experiments": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (drops, "no whole answer within"),
        (drops_in_the_head, "no whole answer within"),
        (without_end, "larger than"),
        (one_page, "the same page of experiments/search"),
        (new_pages, "more than 20 pages of experiments/search"),
        (new_runs, r"more than 20 pages of runs/search|more than 500 runs"),
        (elsewhere, "sends on to https://login"),
        (nested, "no JSON"),
        (lambda handler, what: tell(handler, {"error_code": "X", "message": "broken\nin two"}, 500), "broken$"),
        (lambda handler, what: tell(handler, b"", 404), "status 404"),
    ],
)
def test_a_server_is_left_within_limits(monkeypatch: pytest.MonkeyPatch, answers: Answers, words: str) -> None:
    monkeypatch.setattr(rest, "SECONDS_AN_ANSWER", 0.4)
    monkeypatch.setattr(rest, "MOST_PAGES", 20)
    monkeypatch.setattr(server, "MOST_RUNS", 500)
    monkeypatch.setattr(exchange, "BYTES_AN_ANSWER", 1 << 22)
    began = time.monotonic()
    with serving(answers) as address, pytest.raises(InputError, match=words) as caught:
        server.runs(address, WantedRuns())
    assert caught.value.hint
    assert time.monotonic() - began < 20


def test_a_history_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "MOST_PAGES", 20)

    def answers(handler: Handler, what: str) -> None:
        token = {"next_page_token": f"t{next(NUMBERS)}"}
        tell(handler, {"run": RUN} if what == "runs/get" else {"metrics": [{"key": "n", "value": 1.0}], **token})

    run = StoredRun("a" * 32, None, None, has_metrics=True)
    with serving(answers) as address, pytest.raises(InputError, match="more than 20 pages of metrics"):
        server.read(address, ReadOptions(run))


def test_all_work_together_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "SECONDS_IN_ALL", 0.5)

    def slow(handler: Handler, what: str) -> None:
        time.sleep(0.1)
        new_pages(handler, what)

    with serving(slow) as address, pytest.raises(InputError, match=r"not done after|no whole answer"):
        server.runs(address, WantedRuns())


def test_a_server_of_slow_answers_is_given_up_until_its_runs_are_listed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "SECONDS_AN_ANSWER", 0.1)
    run = StoredRun("a" * 32, None, None, has_metrics=True)
    with serving(drops) as address:
        for words in ("no whole answer", "no whole answer", "no whole answer", "given up", "given up"):
            with pytest.raises(InputError, match=words):
                server.read(address, ReadOptions(run))
        for _ in range(4):
            with pytest.raises(InputError, match="no whole answer"):
                server.runs(address, WantedRuns())


def test_a_busy_server_is_asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "_PAUSE", 0.01)
    asked: list[str] = []

    def busy(handler: Handler, what: str) -> None:
        asked.append(what)
        tell(handler, {"experiments": []}, 503 if len(asked) == 1 else 200)

    with serving(busy) as address:
        assert server.runs(address, WantedRuns()) == []
    assert asked == ["experiments/search"] * 2


def throttled(times: int, after: str, asked: list[float]) -> Answers:
    """A server that answers 429 so many times, and asks to be left alone until then."""

    def answers(handler: Handler, what: str) -> None:
        asked.append(time.monotonic())
        body = b'{"experiments": []}'
        handler.send_response(429 if len(asked) <= times else 200)
        handler.send_header("Retry-After", after)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answers


def in_a_second() -> str:
    return formatdate(time.time() + 1.5, usegmt=True)


@pytest.mark.parametrize("after", ["1", in_a_second], ids=["seconds", "a date"])
def test_a_server_that_asks_for_a_pause_has_it(monkeypatch: pytest.MonkeyPatch, after: str | Callable[[], str]) -> None:
    monkeypatch.setattr(rest, "_PAUSE", 0.01)
    asked: list[float] = []
    with serving(throttled(1, after if isinstance(after, str) else after(), asked)) as address:
        assert server.runs(address, WantedRuns()) == []
    assert len(asked) == 2
    assert asked[1] - asked[0] > 0.4


def test_pauses_grow_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "_PAUSE", 0.05)
    asked: list[float] = []
    with serving(throttled(10**6, "soon", asked)) as address, pytest.raises(InputError, match="status 429"):
        server.runs(address, WantedRuns())
    assert len(asked) == 5
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert all(pause >= 0.05 * 2**i for i, pause in enumerate(pauses))


def test_nobody_waits_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    with serving(throttled(1, "3600", asked)) as address, pytest.raises(InputError, match="again in 3600 s"):
        server.runs(address, WantedRuns())
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("variables", "user", "header"),
    [
        ({}, "", None),
        ({"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "p:w"}, "", basic("me", "p:w")),
        ({"MLFLOW_TRACKING_TOKEN": "abc"}, "", "Bearer abc"),
        ({"MLFLOW_TRACKING_TOKEN": "abc"}, "u:pw@", basic("u", "pw")),
    ],
)  # fmt: skip
def test_logins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], user: str, header: str | None
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    seen: list[str | None] = []

    def refuse(handler: Handler, what: str) -> None:
        seen.append(handler.headers.get("Authorization"))
        tell(handler, {"message": "not you"}, 401)

    with serving(refuse) as address, pytest.raises(InputError, match="not you") as caught:
        server.runs(Path(str(address).replace("//", "/").replace(":/", f"://{user}")), WantedRuns())
    assert seen == [header]
    assert "MLFLOW_TRACKING_TOKEN" in (caught.value.hint or "")
    assert "pw" not in caught.value.message


def test_the_file_of_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".mlflow").mkdir()
    (tmp_path / ".mlflow" / "credentials").write_text(
        "[mlflow]\nmlflow_tracking_username = a%b\nmlflow_tracking_password = c\n"
    )
    seen: list[str | None] = []

    def answer(handler: Handler, what: str) -> None:
        seen.append(handler.headers.get("Authorization"))
        tell(handler, {})

    with serving(answer) as address:
        server.runs(address, WantedRuns())
    assert seen == [basic("a%b", "c")]


def test_odd_values(tmp_path: Path) -> None:
    points = [
        {"value": "NaN", "timestamp": "5", "step": "1"}, {"value": "Infinity", "timestamp": 6, "step": 2},
        {"timestamp": 7, "step": 3}, {"value": 2.5}, {"value": "x", "timestamp": 8, "step": 4},
        {"value": 1.0, "timestamp": 9, "step": 2**63 + 5},
    ]  # fmt: skip

    def answers(handler: Handler, what: str) -> None:
        tell(handler, {"run": RUN} if what == "runs/get" else {"metrics": points})

    with serving(answers) as address:
        (reading,) = server.read(address, ReadOptions(StoredRun("a" * 32, None, None, has_metrics=True)))
    assert [str(value) for value in reading.series["n"]["value"]] == ["2.5", "nan", "inf", "nan"]
    assert reading.skipped_count == 1


def test_a_run_of_a_list_that_is_not_whole_loses_none_of_the_others() -> None:
    odd = [{"info": None}, None, 3, {"data": {"metrics": 1}}, {**RUN, "data": {"metrics": [None]}}]
    info = {"run_id": "a" * 32, "experiment_id": "0", "lifecycle_stage": "active"}
    late = {"info": {**info, "start_time": "x", "run_id": "b" * 32}, "data": RUN["data"]}

    def answers(handler: Handler, what: str) -> None:
        experiments = {"experiments": [{"experiment_id": "0"}]}
        tell(handler, experiments if what.startswith("experiments") else {"runs": [*odd, RUN, late]})

    with serving(answers) as address:
        found = server.runs(address, WantedRuns())
    assert len(found) == len(odd) + 2
    assert [run.id for run in found[-2:]] == ["a" * 32, "b" * 32]
    assert sum("not whole" in run.id for run in found) == 4
