"""Several runs as a table, worst first, each row the way to its own report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradtrend.model.report import Failure, RunReport
from gradtrend.model.words import Role, Verdict
from gradtrend.report.html.markup import element, prose, text
from gradtrend.report.html.names import common_start
from gradtrend.report.html.run import verdict_badge
from gradtrend.report.html.spark import spark
from gradtrend.report.wording.brief import deciding_loss, ends_at, onset_of
from gradtrend.report.wording.escape import cut_short, escape
from gradtrend.report.wording.failures import failure_message
from gradtrend.report.wording.numbers import number, plural, share
from gradtrend.report.wording.subject import deciding_series, grouped, run_title

_WHY = 150  # characters: two lines of the column
_HEADS = (("Verdict", "text"), ("Run", "text"), ("Confidence", "number"), ("Onset", "number"), ("Last", "number"))


def overview(runs: Sequence[RunReport], failures: Sequence[Failure], drawn: int) -> str:
    """The table of `runs`, which are in order already; the first `drawn` of them have charts."""
    counts = Counter(run.verdict for run in runs)
    chips = "".join(
        f"<button type=button class=chip aria-pressed=false data-verdict={v.value}>{counts[v]} {v.value}</button>"
        for v in Verdict
        if counts[v]
    )
    find = "<label class=find>Find <input type=search placeholder='name or reason' autocomplete=off></label>"
    note = "" if drawn >= len(runs) else f"Charts are drawn for the {drawn} worst; the others have a sparkline. "
    body = f"<div class=filters>{chips}{find}</div><p class=facts>{note}<span class=shown></span></p>{_table(runs)}"
    folder = common_start([run.run for run in runs], "/")
    title = plural(len(runs), "run") + (f" <small>in {text(folder)}</small>" if folder else "")
    return element("section", f"<h2 tabindex=-1>{title}</h2>{body}", id="all", class_="all") + failed(failures)


def failed(failures: Sequence[Failure]) -> str:
    """The paths that could not be read."""
    if not failures:
        return ""
    items = "".join(
        element("li", f"<b>{text(one.path)}</b><p>{text(failure_message(one))}</p>{_hint(one)}", class_="error")
        for one in failures
    )
    title = f"{plural(len(failures), 'path')} could not be read"
    return f"<section class=failed><h2>{title}</h2>{element('ul', items, class_='findings')}</section>"


def _hint(failure: Failure) -> str:
    return element("p", text(failure.hint), class_="where") if failure.hint else ""


def _table(runs: Sequence[RunReport]) -> str:
    heads = "".join(
        f"<th scope=col aria-sort=none><button type=button data-kind={kind}>{name}</button></th>"
        for name, kind in _HEADS
    )
    heads += "<th scope=col>Gradient norm</th><th scope=col>Why</th>"
    cut = len(common_start([run.run for run in runs], "/"))
    rows = "".join(_row(run, place, cut) for place, run in enumerate(runs))
    return f"<div class=wide><table class=runs><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"


def _row(run: RunReport, place: int, cut: int) -> str:
    series = deciding_series(run) or deciding_loss(run)
    outline = series.outline if series is not None else None
    loss = "<small>loss</small>" if series is not None and series.role is Role.LOSS else ""
    onset, last = onset_of(run), ends_at(run)
    groups = grouped(run)
    why = groups[0][0].message if groups else ""
    title = text(run_title(run.run, run.name)[cut:])
    return (
        f"<tr data-verdict={run.verdict.value}><td data-by={place}>{verdict_badge(run.verdict)}</td>"
        f"<td><a href='#run-{place}'>{title}</a></td>"
        f"<td>{'' if run.confidence is None else share(run.confidence)}</td><td>{'' if onset is None else onset}</td>"
        f"<td>{'' if last is None else number(last)}</td>"
        f"<td>{'' if outline is None else spark(outline) + loss}</td>"
        f"<td>{prose(cut_short(escape(why), _WHY))}</td></tr>"
    )
