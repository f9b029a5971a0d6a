from __future__ import annotations

from dataclasses import replace

from gradtrend.model.finding import Finding
from gradtrend.model.many.badness import is_sick
from gradtrend.model.report import NonFinite, RunReport
from gradtrend.model.words import Cause, Order, Role, Severity, Verdict
from gradtrend.report.wording.brief import because, by_badness, ends_at, is_well, onset_of, worst_severity


def test_an_explosion(exploding: RunReport) -> None:
    assert because(exploding) == "norm x3.5e5, then NaN" or because(exploding) == "norm x4e5, then NaN"
    assert onset_of(exploding) == 371
    assert is_sick(exploding.verdict, worst_severity(exploding))


def test_a_collapse_says_what_is_nan_and_since_when() -> None:
    finding = Finding("GT201", "nan-collapse", Severity.ERROR, 0.9, "Non-finite.", first_step=196)
    tied = NonFinite(196, 200, Order.GRADIENT_FIRST, None, None, None, False, 4, 4)
    run = RunReport("r", Verdict.NAN_COLLAPSE, 0.9, nonfinite=tied, findings=(finding,))
    assert (because(run), onset_of(run)) == ("norm and loss NaN", 196)
    assert because(replace(run, nonfinite=replace(tied, loss_first_step=None))) == "norm NaN, loss finite"
    assert because(replace(run, nonfinite=replace(tied, grad_first_step=None))) == "loss NaN for good"
    assert because(replace(run, nonfinite=replace(tied, cause=Cause.MASKED))) == "norm NaN, loss masked"
    assert because(replace(run, nonfinite=None)) == "NaN for good"


def test_layers_are_counted(layered: RunReport) -> None:
    assert because(layered) == "9 layers vanish"
    assert because(replace(layered, findings=layered.findings[:1])) == "layer 0_weight vanishes"


def test_other_findings_are_counted_and_notes_are_none(stable: RunReport) -> None:
    spike = Finding("GT105", "recovered-spike", Severity.WARNING, 0.9, "It spiked.", "grad_norm", first_step=40)
    drift = Finding("GT104", "drift", Severity.WARNING, 0.9, "It drifts.", "grad_norm", first_step=0)
    note = Finding("GT511", "resumed", Severity.INFO, 1.0, "It was resumed.")
    assert because(stable) == ""
    assert because(replace(stable, findings=(note,))) == ""
    assert because(replace(stable, findings=(spike, note))) == "recovered spike at 40"
    assert because(replace(stable, findings=(drift, spike))) == "drift, +1"
    assert is_well(replace(stable, findings=(note,)))
    assert not is_well(replace(stable, findings=(spike,)))


def test_what_a_baseline_knows_is_not_told_as_new(exploding: RunReport, layered: RunReport, stable: RunReport) -> None:
    def known(run: RunReport, *rules: str) -> RunReport:
        return replace(run, findings=tuple(replace(f, known=f.rule in rules) for f in run.findings))

    assert because(known(exploding, "GT101")) == f"known: {because(exploding)}"
    collapse = Finding("GT201", "nan-collapse", Severity.ERROR, 0.9, "Non-finite.", first_step=398)
    both = replace(exploding, findings=(*exploding.findings, collapse))
    assert because(known(both, "GT101")) == f"known: {because(both)}, +1 new"  # its NaN is not known
    assert because(known(both, "GT101", "GT201")) == f"known: {because(both)}"
    some = replace(layered, findings=(replace(layered.findings[0], known=True), *layered.findings[1:]))
    assert because(some) == because(layered)
    spike = Finding("GT105", "recovered-spike", Severity.WARNING, 0.9, "It spiked.", "grad_norm", first_step=40)
    drift = Finding("GT104", "drift", Severity.WARNING, 0.9, "It drifts.", "grad_norm", first_step=0, known=True)
    assert because(replace(stable, findings=(drift, spike))) == "known: drift, +1 new"
    assert because(replace(stable, findings=(replace(drift, known=False), replace(spike, known=True)))) == "drift"


def test_the_worst_come_first(exploding: RunReport, stable: RunReport, unjudged: RunReport) -> None:
    warned = replace(stable, findings=(Finding("GT104", "drift", Severity.WARNING, 0.9, "It drifts."),))
    masked = replace(stable, findings=(Finding("GT203", "masked-loss", Severity.ERROR, 0.9, "It reads 0."),))
    unsure = replace(exploding, confidence=0.5)
    ranked = [stable, warned, unjudged, masked, unsure, exploding]
    assert by_badness(ranked) == [exploding, unsure, masked, unjudged, warned, stable]


def test_the_last_value_is_the_norms_and_else_the_losses(exploding: RunReport) -> None:
    series = tuple(replace(one, last=2.5 if one.role is Role.LOSS else 7.0) for one in exploding.series)
    assert ends_at(replace(exploding, series=series)) == 7.0
    assert ends_at(replace(exploding, series=series[1:])) == 2.5
    assert ends_at(replace(exploding, series=())) is None
