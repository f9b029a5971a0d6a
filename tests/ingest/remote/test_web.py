"""Single files of a web server, which lists nothing and may know no ranges."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gradtrend.errors import InputError
from gradtrend.ingest import find_runs, localized
from tests.remote import rows

pytest.importorskip("obstore")
LOG = rows(3000)


class _Server(ThreadingHTTPServer):
    asked: list[tuple[str, str]]
    cut: int = 0
    data: bytes = LOG


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.server.asked.append((self.command, self.path))
        known = {"/logs/metrics.jsonl", "/logs/metrics.jsonl?sig=a%2Fb", "/logs/a%20b.jsonl"}
        status = 200 if self.path in known else 403 if "private" in self.path else 404
        data = self.server.data if status == 200 else b"no"
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.server.cut > 0 and status == 200:
            self.server.cut -= 1
            data = data[: len(data) // 2]
        self.wfile.write(data)

    def do_HEAD(self) -> None:
        self.send_response(403)  # a signature is for one method
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture
def web() -> Iterator[tuple[str, _Server]]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("path", ["metrics.jsonl", "metrics.jsonl?sig=a%2Fb", "a%20b.jsonl"])
def test_a_file(web: tuple[str, _Server], path: str) -> None:
    place, server = web
    (files,) = find_runs(f"{place}/logs/{path}")
    assert files.name == f"{place}/logs/{path.partition('?')[0].replace('%20', ' ')}"
    with localized(files) as local:
        assert local.files.logs[0].path.read_bytes() == LOG
    assert len(server.asked) == 2  # how large it is, and what is in it


def test_a_connection_that_is_cut_is_made_again(web: tuple[str, _Server]) -> None:
    place, server = web
    server.cut = 3
    (files,) = find_runs(f"{place}/logs/metrics.jsonl")
    with localized(files) as local:
        assert local.files.logs[0].path.read_bytes() == LOG


@pytest.mark.parametrize(("path", "said"), [("none.csv", "nothing lies"), ("private.csv", "access denied")])
def test_what_cannot_be_had(web: tuple[str, _Server], path: str, said: str) -> None:
    place, _ = web
    with pytest.raises(InputError, match=said):
        find_runs(f"{place}/logs/{path}?sig=secret")


def test_a_signature_is_told_nowhere(web: tuple[str, _Server]) -> None:
    place, server = web
    server.data = b""
    with pytest.raises(InputError) as raised:
        find_runs(f"{place}/logs/metrics.jsonl?sig=a%2Fb")
    assert "sig" not in str(raised.value)
    assert f"{place}/logs/metrics.jsonl" in raised.value.message


def test_no_server_is_told() -> None:
    with pytest.raises(InputError, match="no answer"):
        find_runs("http://127.0.0.1:9/a.csv")
