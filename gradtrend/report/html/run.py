"""One run as a section of the page."""

from __future__ import annotations

from shlex import quote

from gradtrend.model.advice import SoFar
from gradtrend.model.report import RunReport
from gradtrend.model.runlog import Source
from gradtrend.model.words import Verdict
from gradtrend.report.html.charts import figures
from gradtrend.report.html.layers import layers_of
from gradtrend.report.html.markup import element, text
from gradtrend.report.html.spark import spark
from gradtrend.report.html.why import next_steps, why
from gradtrend.report.wording.numbers import counted_in, number, plural, share
from gradtrend.report.wording.subject import deciding_series, run_title

_TONES = {
    Verdict.STABLE: "good",
    Verdict.WARMUP_SPIKE: "fair",
    Verdict.UNDETERMINED: "fair",
}
_SO_FAR = {SoFar.HEALTHY: "so far it looks healthy", SoFar.SUSPICIOUS: "so far it looks suspicious"}
_MAX_SKIPPED = 5
_KEYS = (
    (("Tab",), "to a chart, and with the focus on it:"),
    (("←", "→"), "the point before, the next; with Shift ten points"),
    (("Home", "End"), "the first point, the last"),
    (("+", "−"), "zoom in, out; with the mouse: Ctrl and wheel"),
    (("0",), "all steps"),
    (("N", "O"), "the next NaN or inf, the onset"),
    (("↑", "↓"), "on the map of layers: another layer"),
)


def verdict_badge(verdict: Verdict) -> str:
    """The verdict in its colour."""
    return element("span", verdict.value, class_=f"verdict {_TONES.get(verdict, 'bad')}")


def run_section(run: RunReport, place: int, several: bool, drawn: bool) -> str:
    """Verdict, why, next, and the charts where they are `drawn`; `place` makes the address, `#run-3`."""
    sure = [f"confidence {share(run.confidence)}"] if run.confidence is not None else ["could not be judged"]
    sure += [_SO_FAR[run.so_far]] if run.so_far is not None else []
    title = text(run_title(run.run, run.name))
    back = "<a class=back href='#all'>All runs</a>" if several else ""
    head = f"{back}<h2 tabindex=-1>{title}</h2><p class=sum>{verdict_badge(run.verdict)} {text(', '.join(sure))}</p>"
    words = element("div", why(run, not drawn) + next_steps(run, not drawn), class_="words")
    charts = _charts(run, drawn)
    body = element("div", words + charts, class_="body" if "<figure" in charts else "body plain")
    return element(
        "section", f"<header>{head}</header>{body}{_details(run)}", class_="run", id=f"run-{place}", data_run=place
    )


def _charts(run: RunReport, drawn: bool) -> str:
    if not drawn:
        norm = deciding_series(run)
        command = element("code", text(f"gradtrend analyze {quote(run.run)} --format html -o report.html"))
        note = f"<p class=facts>Charts are drawn for the worst runs only. Those of this one: {command}</p>"
        return element(
            "div",
            (spark(norm.outline) if norm is not None and norm.outline is not None else "") + note,
            class_="charts few",
        )
    layers = _layers(run)
    charts = figures(run, layers)
    if not charts:
        return element("div", "<p class=facts>There is no series to draw.</p>", class_="charts few")
    return element(
        "div",
        _tools() + charts + "<p class=said role=status aria-live=polite></p>",
        class_=f"charts{' layered' * bool(layers)}",
    )


def _tools() -> str:
    keys = "".join(f"<dt>{' '.join(f'<kbd>{k}</kbd>' for k in names)}</dt><dd>{what}</dd>" for names, what in _KEYS)
    more = f"<details class=hint><summary>Drag over a chart to zoom; double-click to see all</summary><dl>{keys}</dl>"
    return f"<div class=tools>{more}</details><button type=button class=reset disabled>See all steps</button></div>"


def _layers(run: RunReport) -> str:
    layers = layers_of(run)
    if len(layers) < 2:
        return ""
    caption = "<figcaption><h3>Gradient norm by layer</h3><output class=readout aria-live=off></output></figcaption>"
    rows = "".join(
        f"<tr><th scope=row>{text(s.layer)}</th><td>{_of(s.baseline)}</td><td>{_of(s.peak)}</td></tr>"
        for s in layers[:200]
    )
    head = "<tr><th scope=col>layer</th><th scope=col>usual level</th><th scope=col>peak</th></tr>"
    table = f"<details class=values><summary>As a table</summary><table>{head}{rows}</table></details>"
    label = f"Gradient norm of {len(layers)} layers, by {counted_in(run)}"
    body = (
        f"{caption}<div class=plot></div><ul class='legend ramp'></ul><div class=below><p class=facts></p>{table}</div>"
    )
    return element("figure", body, class_="chart heat", tabindex=0, role="group", aria_label=label)


def _of(value: float | None) -> str:
    return "" if value is None else number(value)


def _details(run: RunReport) -> str:
    parts = [("Set up", _settings(run)), ("Read", _sources(run.sources)), ("Checked", _checks(run))]
    listed = "".join(f"<dt>{title}</dt><dd>{body}</dd>" for title, body in parts if body)
    return f"<details class=about><summary>What was read and checked</summary><dl>{listed}</dl></details>"


def _settings(run: RunReport) -> str:
    known = {
        "framework": run.settings.framework,
        "precision": run.settings.precision,
        "learning rate": run.settings.learning_rate,
        "warm-up steps": run.settings.warmup_steps,
        "gradient clip": run.settings.gradient_clip,
        "batch size": run.settings.batch_size,
        "accumulation": run.settings.accumulation,
        "optimizer": run.settings.optimizer,
    }
    return text(", ".join(f"{name} {value}" for name, value in known.items() if value is not None))


def _sources(sources: tuple[Source, ...]) -> str:
    lines = []
    for source in sources:
        line = f"{source.path} ({source.format}): {plural(source.points, 'point')} in {source.series} series"
        count = max(source.skipped_count, len(source.skipped))
        if count:
            reasons = (s.reason if s.line is None else f"line {s.line} {s.reason}" for s in source.skipped)
            line += f"; skipped {count}: {'; '.join([*reasons][:_MAX_SKIPPED])}"
        lines.append(text(line))
    return "<br>".join(lines)


def _checks(run: RunReport) -> str:
    if not run.checks.ran and not run.checks.skipped:
        return ""
    why_not: dict[str, list[str]] = {}
    for skipped in run.checks.skipped:
        why_not.setdefault(skipped.reason, []).append(skipped.rule)
    lines = [plural(len(run.checks.ran), "rule"), *(f"not {', '.join(r)}: {reason}" for reason, r in why_not.items())]
    return "<br>".join(text(line) for line in lines)
