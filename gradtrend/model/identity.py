"""What stays the same of a run and a finding from call to call and from machine to machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from gradtrend.model.finding import Finding

# Azure has the name of a container where others have a login.
_ADDRESS = re.compile(r"^(abfss?://[^/@]*@|[a-z][a-z0-9+.-]*://)(?:[^/@]*@)?", re.IGNORECASE)
_PARTS = 2  # of a path elsewhere: a run's folder alone is often called like its neighbours' ("version_0")


def stable_name(run: str, folder: str) -> str:
    """A run's path as every checkout of a project has it: from the working folder `folder` (absolute, or empty) where
    it lies below it, else its last parts; of an address what is no login. Never absolute, with "/" on every system.
    """
    if _ADDRESS.match(run):
        return _ADDRESS.sub(r"\1", run)
    return below(run, folder) or "/".join(_parts(os.path.normpath(run))[-_PARTS:])


def below(path: str, folder: str) -> str | None:
    """A path from the working folder `folder`, None where it does not lie in it."""
    whole = os.path.normpath(os.path.join(folder, path))  # noqa: PTH118 - no file is asked, and "#1" may follow
    if not folder:
        return None if os.path.isabs(whole) or _parts(whole)[:1] == [".."] else "/".join(_parts(whole))  # noqa: PTH117
    start = os.path.normpath(folder)
    if whole == start:
        return "."
    root = start if start.endswith(os.sep) else start + os.sep
    return "/".join(_parts(whole[len(root) :])) if whole.startswith(root) else None


def fingerprint(run: str, finding: Finding) -> str:
    """32 hexadecimal digits for the run (its `stable_name`), rule, metric and layer of a finding: neither steps nor
    numbers, which differ from run to run of the same training.
    """
    return digest((run, finding.rule, finding.metric or "", finding.layer or ""))


def digest(words: Iterable[str]) -> str:
    """32 hexadecimal digits for some words in their order."""
    import hashlib  # which a call without fingerprints does without

    text = "\0".join(words)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _parts(path: str) -> list[str]:
    return [part for part in path.replace(os.sep, "/").split("/") if part]
