"""Folders and buckets -> the runs below them: those that have changed judged anew, the others as they are known."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from gradtrend.ingest import Known, RunFiles, listing_of, natural, signatures
from gradtrend.model.many.record import Record
from gradtrend.model.report import Failure
from gradtrend.pipeline.analyze import Plan, plan_of
from gradtrend.pipeline.apart import Outcome
from gradtrend.pipeline.failures import found_runs, is_no_ones
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.scan.engines import Engine, Job
from gradtrend.pipeline.scan.state import State, open_state
from gradtrend.pipeline.scan.tells import tells_of
from gradtrend.pipeline.scan.wanted import Wanted
from gradtrend.report.json.records import record_of_failure
from gradtrend.version import __version__

# Records of runs that are wanted, as soon as they are there, and how many pieces of work are done, of how many.
Heard = Callable[[Sequence[Record], int, int], None]


@dataclass(frozen=True, slots=True)
class Scanned:
    """The outcome of a scan: the wanted runs in the order of their names, failures of the paths that were given or of
    gradtrend itself, and how many shares of logs were read and how many were as they were known. `forgot` says that the
    state was of another version, other rules or options. `tells` are sentences on what tells sick runs from healthy
    ones, where they were asked for.
    """

    records: tuple[Record, ...]
    failures: tuple[Failure, ...] = ()
    read: int = 0
    known: int = 0
    forgot: bool = False
    tells: tuple[str, ...] = ()


@dataclass(slots=True)
class _Root:
    """One of the paths of a scan. `shares` are the names of what is read together below it, `digest` is that of its
    files, None where it is an address, and nothing can be said of it for the next time.
    """

    name: str
    digest: str | None = None
    shares: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Task:
    """Logs to be read: what they are called in the state, how their files are, and the job."""

    share: str
    signature: str | None
    job: Job


@dataclass(slots=True)
class _Scan:
    """A scan in progress."""

    plan: Plan
    wanted: Wanted
    state: State
    leave_out: frozenset[Path]
    heard: Heard
    records: list[Record] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    roots: list[_Root] = field(default_factory=list)
    tasks: list[_Task] = field(default_factory=list)
    known: int = 0
    done: int = 0

    def find(self, path: str) -> None:
        """Look below a path: what is known is told, what is not becomes a task."""
        root = _Root(path)
        self.roots.append(root)
        listing = listing_of(path, frozenset(map(str, self.leave_out)))
        root.digest = None if listing is None else listing.digest
        before = self.state.roots.get(root.name)
        if before is not None and root.digest == before.digest and self._has_all(before.shares):
            root.shares += before.shares
            for share in before.shares:
                if self.wanted.in_shard(share):
                    self._take_known(self.state.shares[share][1])
            return
        formats: dict[str, tuple[int, int, str]] = {}
        known = Known(self.state.format_of, lambda *found: formats.update({found[0]: found[1:]}), self.leave_out)
        jobs = found_runs(path, self.plan.options, known)
        self.state.keep_formats(formats)
        shares = [job for job in jobs if isinstance(job, RunFiles)]
        signed = iter(signatures(listing, shares) if listing is not None else [None] * len(shares))
        for job, share in zip(jobs, _share_names(jobs), strict=True):
            signature = next(signed) if isinstance(job, RunFiles) else None
            root.shares.append(share)
            if not self.wanted.in_shard(share):
                continue
            if isinstance(job, RunFiles) and not self.wanted.may_have(job, listing):
                continue
            records = self.state.records_of(share, signature)
            if records is None:
                self.tasks.append(_Task(share, signature, job))
            else:
                self._take_known(records)

    def _has_all(self, shares: Iterable[str]) -> bool:
        return all(share in self.state.shares for share in shares if self.wanted.in_shard(share))

    def _take_known(self, records: Sequence[Record]) -> None:
        self.known += 1
        self._tell(records)

    def _tell(self, records: Sequence[Record]) -> None:
        wanted = [record for record in records if self.wanted.has(record)]
        self.records += wanted
        self.done += 1
        self.heard(wanted, self.done, self.known + len(self.tasks))

    def take(self, place: int, outcome: Outcome[Record]) -> None:
        """Take what came of a task."""
        task = self.tasks[place]
        found, failures = outcome
        records = (*found, *map(record_of_failure, failures))
        if task.signature is not None and not any(map(_may_be_otherwise, failures)):
            self.state.keep_share(task.share, task.signature, records)
        given = isinstance(task.job, Failure)
        self.failures += [failure for failure in failures if failure.bug is not None or given]
        self._tell(records if not given else found)

    def keep_roots(self) -> None:
        """Say in the state of which roots all is known."""
        left = {task.share for task in self.tasks if task.signature is None}
        for root in self.roots:
            if root.digest is not None and not left & set(root.shares) and self._has_all(root.shares):
                self.state.keep_root(root.name, root.digest, root.shares)

    def outcome(self, tell: bool) -> Scanned:
        """What came of it."""
        records = in_order(self.records)
        tells = tells_of(records, self.state) if tell else ()
        return Scanned(records, tuple(self.failures), len(self.tasks), self.known, self.state.was_other, tells)


def scan_all(
    paths: Sequence[str],
    options: AnalyzeOptions,
    wanted: Wanted,
    engine: Engine,
    state: Path | None = None,
    leave_out: Iterable[Path] = (),
    heard: Heard = lambda records, done, count: None,
    tell: bool = False,
) -> Scanned:
    """The wanted runs below some paths. What `state` knows and is as it was is not read again; what is found out is
    added to it at once. `leave_out` are files below the paths that the call writes itself. `tell` asks for what tells
    sick runs from healthy ones.

    Raises `ConfigError` for rules, a source or a state that cannot be used, and what the engine raises.
    """
    plan = plan_of(replace(options, hyperparameters=True))
    own = {Path(os.path.abspath(path)) for path in (*leave_out, *([] if state is None else [state]))}  # noqa: PTH100
    memory = open_state(state, key_of(plan))
    finished = False
    try:
        scan = _Scan(plan, wanted, memory, frozenset(own), heard)
        for path in paths:
            scan.find(path)
        engine(plan, [task.job for task in scan.tasks], scan.take)
        scan.keep_roots()
        finished = True
        return scan.outcome(tell)
    finally:
        memory.close(tidy=finished)


def in_order(records: Iterable[Record]) -> tuple[Record, ...]:
    """Records by the names of their runs, counters in them as numbers."""
    return tuple(sorted(records, key=lambda record: (natural(record.run), record.name or "", record.failure or "")))


def key_of(plan: Plan) -> str:
    """A digest of all but the logs that records hang on: gradtrend's version, the rules, the options."""
    options = plan.options
    asked = (options.names, options.format, options.columns, options.wanted)
    text = repr((__version__, plan.rules, sorted(plan.selected), sorted(plan.ignored), asked, options.loss, options.lr))
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def _share_names(jobs: Sequence[Job]) -> Iterator[str]:
    """What shares are called in the state: by their names, which a store may have several of."""
    seen: Counter[str] = Counter()
    for job in jobs:
        name = job.name if isinstance(job, RunFiles) else job.path
        seen[name] += 1
        yield f"{name}\n{seen[name]}" if seen[name] > 1 else name


def _may_be_otherwise(failure: Failure) -> bool:
    """Whether another try may do better with the same files: a bug, or no memory for it."""
    return is_no_ones(failure) or "process that read it" in failure.message or "worker that read it" in failure.message
