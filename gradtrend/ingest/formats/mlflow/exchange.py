"""One request to a server and its whole answer, within limits of time and bytes, whatever answers there."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPSConnection
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from gradtrend.ingest.limits import BYTES_AN_ANSWER, SECONDS_SILENT

_BLOCK = 1 << 18


class Answer(NamedTuple):
    """What a server answered; `place` is where it sends elsewhere, `after` when it wants to be asked again, both empty
    where it does not.
    """

    status: int
    content: bytes
    place: str
    after: str = ""


class TooMuchError(Exception):
    """An answer beyond the limits of time or bytes; the message says which."""


def exchange(
    url: str, headers: Mapping[str, str], body: bytes | None, seconds: float, tls: ssl.SSLContext | None
) -> Answer:
    """The answer of a server. Raises TooMuchError, OSError, HTTPException, and ValueError for what is no address."""
    connection, target = _connection(urlsplit(url), tls)
    cut = threading.Event()
    timer = threading.Timer(seconds, _cut, (connection, cut))
    timer.daemon = True
    timer.start()
    try:
        connection.request("GET" if body is None else "POST", target, body, dict(headers))
        with connection.getresponse() as response:
            content = bytearray()
            while piece := response.read1(_BLOCK):
                content += piece
                if len(content) > BYTES_AN_ANSWER:
                    raise TooMuchError(f"its answer is larger than {BYTES_AN_ANSWER >> 20} MiB")
            said = (response.getheader(name) or "" for name in ("Location", "Retry-After"))
            answer = Answer(response.status, bytes(content), *said)
    except Exception as error:
        if cut.is_set():
            raise _too_long(seconds) from error
        raise
    finally:
        timer.cancel()
        connection.close()
    if cut.is_set():  # the rest of the body then reads as its end
        raise _too_long(seconds)
    return answer


def _too_long(seconds: float) -> TooMuchError:
    return TooMuchError(f"no whole answer within {seconds:.0f} s")


def _cut(connection: HTTPConnection, cut: threading.Event) -> None:
    """End a connection under whoever reads from it: a limit for each read lets through a byte now and then."""
    cut.set()
    kept = getattr(connection, "kept", None)
    if kept is not None:
        with suppress(OSError):
            kept.shutdown(socket.SHUT_RDWR)


class _Plain(HTTPConnection):
    """A connection that keeps its socket at hand, when the answer has taken it over, too."""

    kept: socket.socket | None = None

    def connect(self) -> None:
        """As its class does."""
        super().connect()
        self.kept = self.sock


class _Secure(HTTPSConnection):
    """As `_Plain`. The handshake has a limit of its own, as a whole."""

    kept: socket.socket | None = None

    def connect(self) -> None:
        """As its class does."""
        super().connect()
        self.kept = self.sock


def _connection(url: SplitResult, tls: ssl.SSLContext | None) -> tuple[HTTPConnection, str]:
    """A connection that is not open yet, straight or through the environment's proxy, and what to ask it for."""
    if not url.hostname:
        raise ValueError("no host in the address")
    silent = float(os.environ.get("MLFLOW_HTTP_REQUEST_TIMEOUT") or SECONDS_SILENT)
    secure = url.scheme == "https"
    target = f"{url.path or '/'}{'?' + url.query if url.query else ''}"
    proxy = None if proxy_bypass(url.hostname) else getproxies().get(url.scheme)
    if not proxy:
        if secure:
            return _Secure(url.hostname, url.port, timeout=silent, context=tls), target
        return _Plain(url.hostname, url.port, timeout=silent), target
    through = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if not through.hostname:
        raise ValueError("no host in the proxy's address")
    login = {"Proxy-Authorization": basic(through.username, through.password or "")} if through.username else {}
    if secure:
        tunnel = _Secure(through.hostname, through.port or 80, timeout=silent, context=tls)
        tunnel.set_tunnel(url.hostname, url.port or 443, login)
        return tunnel, target
    return _Plain(through.hostname, through.port or 80, timeout=silent), f"http://{url.netloc}{target}"


def basic(user: str, password: str) -> str:
    """The header of a login by name and password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
