"""A real S3 API on this machine, and what lies on the way to it: throttling, cut answers, silence."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

BUCKET = "training-logs"
_SERVER = (
    "import sys; from moto.server import ThreadedMotoServer; from werkzeug.serving import WSGIRequestHandler\n"
    "WSGIRequestHandler.protocol_version = 'HTTP/1.1'\n"
    "server = ThreadedMotoServer('127.0.0.1', 0, verbose=False); server.start()\n"
    "print(server.get_host_and_port()[1], flush=True); sys.stdin.read()"
)
_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "tests",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass
class S3:
    """A bucket on moto's server; `environment` is what a client needs to reach it."""

    port: int
    environment: Mapping[str, str]

    def put(self, key: str, data: bytes) -> None:
        """One object, by whatever key."""
        self.client().put_object(Bucket=BUCKET, Key=key, Body=data)

    def put_folder(self, folder: Path, below: str) -> None:
        """All files of a folder."""
        client = self.client()
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                key = f"{below}/{file.relative_to(folder).as_posix()}"
                client.put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())

    def client(self) -> Any:
        """boto3's client of the server itself."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id="tests",
            aws_secret_access_key="tests",
            region_name="us-east-1",
        )


@contextmanager
def s3_server() -> Iterator[S3]:
    """moto's server in a process of its own, with an empty bucket."""
    pytest.importorskip("moto.server")
    pytest.importorskip("obstore")
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        server = S3(port, {**_CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"})
        server.client().create_bucket(Bucket=BUCKET)
        yield server
    finally:
        process.kill()
        process.communicate()


@dataclass
class Proxy:
    """What stands before a server. Of the requests whose path holds `of`, the next `slow` are answered 503 SlowDown, of
    the next `cut` the body ends in the middle, the next `hang` get no answer; `before` is called ahead of each.
    """

    port: int = 0
    of: str = ""
    slow: int = 0
    cut: int = 0
    hang: int = 0
    status: int = 0  # with which all of them are refused
    body: bytes = b""
    requests: list[str] = field(default_factory=list)
    most_at_once: int = 0
    before: Any = None
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def takes(self, path: str) -> str:
        """What is to be done with a request."""
        with self._lock:
            self.requests.append(path)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            if self.before is not None:
                self.before(path)
            if self.of not in path:
                return ""
            for what in ("slow", "cut", "hang"):
                if (left := getattr(self, what)) > 0:
                    setattr(self, what, left - 1)
                    return what
            return "status" if self.status else ""

    def done(self) -> None:
        """A request has been answered."""
        with self._lock:
            self._at_once -= 1

    def count(self, part: str) -> int:
        """How many requests had this in their path."""
        return sum(part in path for path in self.requests)


@contextmanager
def proxy_before(port: int) -> Iterator[Proxy]:
    """A proxy before a server on this machine."""
    proxy = Proxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            what = proxy.takes(self.path)
            try:
                self._answer(what)
            except OSError:  # the client has left
                self.close_connection = True
            finally:
                proxy.done()

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_PUT(self) -> None:
            self.do_GET()

        def _answer(self, what: str) -> None:
            if what == "hang":
                time.sleep(20)
                self.close_connection = True
                return
            if what in ("slow", "status"):
                self._refuse(503 if what == "slow" else proxy.status, proxy.body or _SLOW_DOWN)
                return
            server = http.client.HTTPConnection("127.0.0.1", port)
            size = int(self.headers.get("Content-Length") or 0)
            server.request(self.command, self.path, self.rfile.read(size) if size else None, dict(self.headers))
            answer = server.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if what == "cut" else data)
            if what == "cut":
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            server.close()

        def _refuse(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()


_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


def error_body(code: str) -> bytes:
    """What S3 says beside a status."""
    return f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()


def gradtrend(
    *words: str, environment: Mapping[str, str], folder: Path | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """A command line in a process of its own."""
    from tests.processes import SOURCE

    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run(
        [sys.executable, "-m", "gradtrend", *words],
        env=clean | dict(environment) | {"PYTHONPATH": str(SOURCE)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def rows(steps: int, seed: int = 0) -> bytes:
    """JSON lines of a healthy run; each seed has its own values."""
    return "".join(
        json.dumps({"step": i, "loss": 4 / (1 + i) + seed / 97, "grad_norm": 1 + 0.1 * ((i * 7 + seed) % 5)}) + "\n"
        for i in range(steps)
    ).encode()
