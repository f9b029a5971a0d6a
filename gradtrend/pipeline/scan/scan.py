"""Folders and buckets -> the runs below them: those that have changed judged anew, the others as they are known."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from gradtrend.ingest import Known, Listing, RunFiles, natural, signatures
from gradtrend.model.many.record import Record
from gradtrend.model.report import Failure
from gradtrend.pipeline.analyze import Plan, plan_of
from gradtrend.pipeline.apart import Outcome
from gradtrend.pipeline.failures import found_runs, listing_at
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.scan.engines import Engine, Job
from gradtrend.pipeline.scan.record import record_of_lost
from gradtrend.pipeline.scan.state import Root, State, open_state
from gradtrend.pipeline.scan.tells import tells_of
from gradtrend.pipeline.scan.wanted import Wanted, unmatched
from gradtrend.version import __version__

_Signed = tuple[str, str | None]  # the name of a share, and its signature
# Records of runs that are wanted, as soon as they are there, and how many pieces of work are done, of how many.
Heard = Callable[[Sequence[Record], int, int], None]


@dataclass(frozen=True, slots=True)
class Scanned:
    """The outcome of a scan: the wanted runs in the order of their names, failures of the paths that were given or of
    gradtrend itself, and how many shares of logs were read and how many were as they were known. `forgot` says that the
    state was of another version, other rules or options. `tells` are sentences on what tells sick runs from healthy
    ones, where they were asked for; `unmatched` are patterns that fitted no run.
    """

    records: tuple[Record, ...]
    failures: tuple[Failure, ...] = ()
    read: int = 0
    known: int = 0
    forgot: bool = False
    tells: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()


@dataclass(slots=True)
class _Root:
    """One of the paths of a scan. `shares` are names and signatures of what is read together below it, `digest` is that
    of its files, None where it is an address, and nothing can be said of it for the next time.
    """

    name: str
    digest: str | None = None
    shares: list[_Signed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Task:
    """Logs to be read: below which root, what they are called in the state, how their files are, the job."""

    root: _Root
    share: str
    signature: str | None
    job: Job


@dataclass(slots=True)
class _Scan:
    """A scan in progress."""

    plan: Plan
    wanted: Wanted
    state: State
    leave_out: frozenset[str]
    heard: Heard
    records: list[Record] = field(default_factory=list)  # of all verdicts
    unmatched: set[str] = field(default_factory=set)  # patterns that no run has fitted so far
    failures: list[Failure] = field(default_factory=list)
    roots: list[_Root] = field(default_factory=list)
    tasks: list[_Task] = field(default_factory=list)
    known: int = 0
    done: int = 0
    seen: set[str] | None = None  # the real paths of files below the roots so far, where there are several

    def find(self, path: str) -> None:
        """Look below a path: what is known is told, what is not becomes a task."""
        listing = listing_at(path, self.plan.options, self.leave_out)
        files = self._real_files(path, listing)
        if files and self.seen is not None and files <= self.seen:  # each run is told once
            return
        root = _Root(path, None if listing is None else listing.digest)
        self.roots.append(root)
        before = self.state.roots.get(path)
        if before is not None and root.digest == before.digest and self._has_all(root, before.shares):
            root.shares += before.shares
            for share, _ in self._mine(root, before.shares):
                self._take_known(self.state.shares[share][1], root, len(before.shares) == 1)
        else:
            self._look(root, listing)
        if self.seen is not None:
            self.seen |= files

    def _look(self, root: _Root, listing: Listing | None) -> None:
        """Find what is to be read together below a root."""
        formats: dict[str, tuple[int, int, str]] = {}
        known = Known(self.state.format_of, lambda *found: formats.update({found[0]: found[1:]}), self.leave_out)
        jobs = [job for job in found_runs(root.name, self.plan.options, known) if not self._was_seen(job)]
        self.state.keep_formats(formats)
        signed = iter(signatures(listing, [job for job in jobs if isinstance(job, RunFiles)]))
        signs = [next(signed) if isinstance(job, RunFiles) else None for job in jobs]
        root.shares += zip(_share_names(jobs), signs, strict=True)
        mine = {*self._mine(root, root.shares)}
        for job, (share, signature) in zip(jobs, root.shares, strict=True):
            may_have = isinstance(job, Failure) or self.wanted.may_have(job, listing)
            if (share, signature) not in mine or not may_have:
                continue
            records = self.state.records_of(share, signature)
            if records is None:
                self.tasks.append(_Task(root, share, signature, job))
            else:
                self._take_known(records, root, len(jobs) == 1)
        if listing is not None and not any(isinstance(job, Failure) for job in jobs):
            self.state.forget_gone(root.name, {share for share, _ in root.shares}, listing.files)

    def _mine(self, root: _Root, shares: Sequence[_Signed]) -> list[_Signed]:
        """Shares that fall to this machine. One that is all there is each machine reads, for its part of the runs."""
        return [share for share in shares if len(shares) == 1 or self.wanted.in_shard(share[0], root.name)]

    def _real_files(self, path: str, listing: Listing | None) -> set[str]:
        """The real paths of the files below a path, where several paths are given."""
        if self.seen is None or listing is None:
            return set()
        real = os.path.realpath(path)
        return {os.path.normpath(os.path.join(real, os.path.relpath(file, path))) for file in listing.files}  # noqa: PTH118

    def _was_seen(self, job: Job) -> bool:
        """Whether the logs have been found below an earlier path, by a link from this one."""
        if not self.seen or isinstance(job, Failure) or job.remote is not None or not job.logs:
            return False
        return all(os.path.realpath(log.path) in self.seen for log in job.logs)

    def _has_all(self, root: _Root, shares: Sequence[_Signed]) -> bool:
        return all(self.state.records_of(*share) is not None for share in self._mine(root, shares))

    def _take_known(self, records: Sequence[Record], root: _Root, alone: bool) -> None:
        self.known += 1
        self._tell(records, root, alone)

    def _tell(self, records: Sequence[Record], root: _Root, alone: bool) -> None:
        mine = [record for record in records if not alone or self.wanted.in_shard(record.run, root.name)]
        self.unmatched &= unmatched(self.unmatched, mine)
        compared = [record for record in mine if self.wanted.compares(record)]
        self.records += compared
        self.done += 1
        self.heard([record for record in compared if self.wanted.has(record)], self.done, self.known + len(self.tasks))

    def take(self, place: int, outcome: Outcome[Record]) -> None:
        """Take what came of a task."""
        task = self.tasks[place]
        found, failures = outcome
        records = (*found, *(record_of_lost(task.job, failure) for failure in _one_a_run(failures)))
        given = not found and (isinstance(task.job, Failure) or (not task.job.logs and task.job.name == task.root.name))
        if (
            task.signature is not None
            and not given
            and not any(_may_be_otherwise(task.job, failure) for failure in failures)
        ):
            self.state.keep_share(task.share, task.signature, records)
        self.failures += [failure for failure in failures if failure.bug is not None or given]
        self._tell(records if not given else found, task.root, len(task.root.shares) == 1)

    def keep_roots(self) -> None:
        """Say in the state of which roots all is known."""
        for root in self.roots:
            signed = tuple((share, signature) for share, signature in root.shares if signature is not None)
            if root.digest is not None and len(signed) == len(root.shares) and self._has_all(root, signed):
                self.state.keep_root(root.name, Root(root.digest, signed))

    def outcome(self, tell: bool) -> Scanned:
        """What came of it."""
        compared = in_order(self.records)
        return Scanned(
            records=tuple(record for record in compared if self.wanted.has(record)),
            failures=tuple(self.failures),
            read=len(self.tasks),
            known=self.known,
            forgot=self.state.was_other,
            tells=tells_of(compared, self.state) if tell else (),
            unmatched=tuple(sorted(self.unmatched)),
        )


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
    own = {os.path.realpath(path) for path in (*leave_out, *([] if state is None else [state]))}
    memory = open_state(state, key_of(plan))
    finished = False
    try:
        scan = _Scan(plan, wanted, memory, frozenset(own), heard, seen=set() if len(paths) > 1 else None)
        scan.unmatched |= {*wanted.include, *wanted.exclude}
        for path in _from_above(paths):
            scan.find(path)
        engine(plan, [task.job for task in scan.tasks], scan.take)
        scan.keep_roots()
        finished = True
        return scan.outcome(tell)
    finally:
        memory.close(tidy=finished)


def _from_above(paths: Sequence[str]) -> list[str]:
    """Paths in their order, but a folder before what lies in it."""
    return sorted(paths, key=lambda path: 0 if "://" in path else len(Path(os.path.realpath(path)).parts))


def in_order(records: Iterable[Record]) -> tuple[Record, ...]:
    """Records by the names of their runs, counters in them as numbers."""
    return tuple(sorted(records, key=_place))


def _place(record: Record) -> tuple[Any, ...]:
    """A key by which records have one order, whatever order they come in, also where they come from files."""
    run = record.run.encode("utf-8", "backslashreplace").decode()
    return natural(run), run, record.name or "", record.failure or ""


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


def _one_a_run(failures: Sequence[Failure]) -> list[Failure]:
    """Failures of one path as one: each run is told once."""
    first: dict[str, Failure] = {}
    for one in failures:
        before = first.setdefault(one.path, one)
        if before is not one:
            first[one.path] = replace(before, message=f"{before.message}; {one.message}")
    return list(first.values())


def _may_be_otherwise(job: Job, failure: Failure) -> bool:
    """Whether another try may do better though nothing has changed: for want of memory, by a bug, over a network."""
    if failure.passing or isinstance(job, Failure):
        return True
    return job.remote is not None or any(run.state for log in job.logs for run in log.runs)
