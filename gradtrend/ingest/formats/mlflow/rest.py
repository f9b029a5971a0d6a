"""MLflow's REST API: logins as MLflow's own client takes them, answers as objects, pages that end."""

from __future__ import annotations

import configparser
import json
import os
import ssl
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from gradtrend.ingest.formats.mlflow.exchange import Answer, TooMuchError, basic, exchange
from gradtrend.ingest.limits import LONGEST_WAIT, MOST_PAGES, SECONDS_AN_ANSWER, SECONDS_IN_ALL

# Seconds before a server that dropped the connection is asked once more; before a busy one, twice as long each time.
_PAUSE = 1.0
_MOST_TRIES = 5  # of a busy server: 15 s in all, where it does not say how long
_BUSY = (429, 502, 503, 504)
_MOST_SLOW = 3  # answers of one server that came to no end, before its other runs are given up as well
_slow: dict[str, int] = {}  # such answers by server, from one listing of its runs to the next
_ADDRESS_HINT = "Is this the server's address?"
_LOGIN_HINT = "Set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN."


class RefusedError(Exception):
    """The server did not do what was asked; `code` is MLflow's word for the reason, if it gave one."""

    def __init__(self, reason: str, code: str = "", hint: str = _ADDRESS_HINT) -> None:
        super().__init__(reason)
        self.code = code
        self.hint = hint


class Api:
    """The API of one server, for one piece of work of at most `SECONDS_IN_ALL`; several threads may use it.

    A server that was given up is asked again by the work that `lists` its runs: a call begins with that.
    """

    def __init__(self, address: str, lists: bool = False) -> None:
        given = urlsplit(address)
        self.address = urlunsplit((given.scheme, given.netloc.rpartition("@")[2], given.path.rstrip("/"), "", ""))
        self._headers = {"Accept": "application/json", **_login(given.username, given.password)}
        self._tls = _tls() if given.scheme == "https" else None
        self._until = time.monotonic() + SECONDS_IN_ALL
        if lists:
            _slow.pop(self.address, None)

    def get(self, what: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a GET. Raises RefusedError."""
        return self._object(f"{what}?{urlencode(options)}", None)

    def post(self, what: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a POST. Raises RefusedError."""
        return self._object(what, json.dumps(options).encode())

    def pages(self, ask: Any, what: str, field: str, options: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
        """The objects of each page, by `get` or `post`. Raises RefusedError, also where the pages do not end."""
        seen: set[str] = set()
        for _ in range(MOST_PAGES):
            page = ask(what, options)
            yield objects(page, field)
            token = page.get("next_page_token")
            if not token:
                return
            if not isinstance(token, str) or token in seen:
                raise RefusedError(f"it gives the same page of {what} again and again")
            seen.add(token)
            options = {**options, "page_token": token}
        raise RefusedError(f"more than {MOST_PAGES} pages of {what}")

    def _object(self, what: str, body: bytes | None) -> dict[str, Any]:
        url = f"{self.address}/api/2.0/mlflow/{what}"
        for tries in range(_MOST_TRIES):
            try:
                answer = self._answer(url, body)
            except (ConnectionError, HTTPException):
                if tries:
                    raise
                time.sleep(_PAUSE)
                continue
            if answer.status not in _BUSY:
                break
            if tries < _MOST_TRIES - 1:
                self._wait(_PAUSE * 2**tries, _seconds_of(answer.after))
        return _object_of(answer)

    def _wait(self, seconds: float, wanted: float) -> None:
        """Wait as long as a busy server wants, at least some seconds. Raises RefusedError where that is too long."""
        if wanted > LONGEST_WAIT:
            raise RefusedError(f"it is busy, and wants to be asked again in {wanted:.0f} s", hint="Ask it later.")
        time.sleep(max(0.0, min(max(seconds, wanted), self._until - time.monotonic())))

    def _answer(self, url: str, body: bytes | None) -> Answer:
        if _slow.get(self.address, 0) >= _MOST_SLOW:
            raise RefusedError(f"given up after {_MOST_SLOW} answers that came to no end")
        seconds = min(SECONDS_AN_ANSWER, self._until - time.monotonic())
        if seconds <= 0:
            raise RefusedError(f"not done after {SECONDS_IN_ALL:.0f} s")
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            return exchange(url, headers, body, seconds, self._tls)
        except TooMuchError:
            _slow[self.address] = _slow.get(self.address, 0) + 1
            raise


def _seconds_of(after: str) -> float:
    """How long a server wants to be left alone: in seconds, or until a date; 0 where it does not say."""
    try:
        return float(after) if after.strip().isdecimal() else parsedate_to_datetime(after).timestamp() - time.time()
    except (ValueError, OverflowError, OSError):
        return 0.0


def objects(answer: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """The list of objects in a field of an answer, which leaves out an empty one; what is none stands as an empty one.

    Raises RefusedError.
    """
    found = answer.get(field, [])
    if not isinstance(found, list):
        raise RefusedError(f"its answer has no list of {field}")
    return [one if isinstance(one, dict) else {} for one in found]


def _object_of(answer: Answer) -> dict[str, Any]:
    """The object that an answer is. Raises RefusedError."""
    try:
        found = json.loads(answer.content)
    except (ValueError, RecursionError):
        found = None
    if answer.status >= 300:
        said = found if isinstance(found, dict) else {}
        raise _refusal(answer, str(said.get("message") or ""), str(said.get("error_code") or ""))
    if not isinstance(found, dict):
        raise RefusedError("its answer is no JSON object")
    return found


def _refusal(answer: Answer, message: str, code: str) -> RefusedError:
    if answer.status < 400:
        return RefusedError(f"it sends on to {answer.place[:200]}", hint="Give the address that it sends on to.")
    reason = (message.splitlines() or [f"status {answer.status}"])[0][:300]
    return RefusedError(reason, code, _LOGIN_HINT if answer.status in (401, 403) else _ADDRESS_HINT)


def _login(user: str | None, password: str | None) -> dict[str, str]:
    """The header of the login that the address, the environment or MLflow's file of credentials gives, as its own
    client takes them.
    """
    said = _credentials()
    user = user or os.environ.get("MLFLOW_TRACKING_USERNAME") or said.get("mlflow_tracking_username")
    password = password or os.environ.get("MLFLOW_TRACKING_PASSWORD") or said.get("mlflow_tracking_password")
    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    if user and password:
        return {"Authorization": basic(user, password)}
    return {"Authorization": f"Bearer {token}"} if token else {}


def _credentials() -> Mapping[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(Path.home() / ".mlflow" / "credentials", encoding="utf-8")
    except (OSError, RuntimeError, UnicodeDecodeError, configparser.Error):
        return {}
    return parser["mlflow"] if parser.has_section("mlflow") else {}


def _tls() -> ssl.SSLContext:
    """How a server's certificate is checked, by the variables that MLflow's client takes."""
    authorities = os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or os.environ.get("REQUESTS_CA_BUNDLE")
    place = Path(authorities) if authorities else None
    folder = str(place) if place is not None and place.is_dir() else None
    tls = ssl.create_default_context(cafile=None if folder else authorities, capath=folder)
    if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    own = os.environ.get("MLFLOW_TRACKING_CLIENT_CERT_PATH")
    if own:
        tls.load_cert_chain(own)
    return tls
