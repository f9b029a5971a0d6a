"""What tells sick runs from healthy ones, in words."""

from __future__ import annotations

from gradtrend.model.many.contrast import Contrast, ContrastKind, Contrasts, Outcome, Part, Spread
from gradtrend.model.runlog import Scalar
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.numbers import number

MOST_CONTRASTS = 5  # that are told: those behind them mostly hang together with the first
NO_CAUSE = "What goes together need not be the cause: change one of these alone to know."
_MOST_NAMES = 3
_LONGEST = 60  # characters of a name or a value
_NO_FLOAT = 2**1023


def contrast_lines(contrasts: Contrasts, most: int = MOST_CONTRASTS) -> list[str]:
    """A line for each hyperparameter that tells sick from healthy runs, the surest first, and a last one on what that
    means; or the one line that says why there is none.
    """
    found = contrasts.found
    if not found:
        return [_why_none(contrasts)]
    lines = [contrast_line(contrast, contrasts.tested) for contrast in found[:most]]
    if len(found) > most:
        lines.append(f"{len(found) - most:,} more of {contrasts.tested:,} tested")
    return [*lines, NO_CAUSE]


def contrast_line(contrast: Contrast, tested: int) -> str:
    """One hyperparameter: how it parts the runs, and how likely that is by chance."""
    name = _name(contrast.names[0])
    if contrast.kind is ContrastKind.NUMBER:
        said = _by_size(name, contrast)
    elif contrast.inside is None or contrast.outside is None:
        said = name
    elif contrast.kind is ContrastKind.VALUE:
        said = (
            f"{name} = {_value(contrast.value)}: {_sick(contrast.inside)} are sick, "
            f"of the others {_sick(contrast.outside)}"
        )
    else:
        said = f"{name}: where it is set, {_sick(contrast.inside)} are sick, elsewhere {_sick(contrast.outside)}"
    return f"{said} (p {_p(contrast.corrected_p)}, of {tested:,} tested){_others(contrast.names[1:])}"


def _by_size(name: str, contrast: Contrast) -> str:
    spreads = ((word, spread) for word, spread in (("sick", contrast.sick), ("healthy", contrast.healthy)))
    said = f"{name}: " + ", ".join(f"{word} runs {_spread(spread)}" for word, spread in spreads if spread is not None)
    if contrast.threshold is None or contrast.inside is None or contrast.outside is None:
        return said
    inside, outside = ("above", "up to it") if contrast.sick_are == "above" else ("up to", "above it")
    return (
        f"{said}; {inside} {number(contrast.threshold)}: {_sick(contrast.inside)} are sick, "
        f"{outside}: {_sick(contrast.outside)}"
    )


def _spread(spread: Spread) -> str:
    if spread.least == spread.most:
        return number(spread.least)
    return f"{number(spread.least)} to {number(spread.most)} (median {number(spread.median)})"


def _sick(part: Part) -> str:
    return f"{part.sick:,} of {part.runs:,}"


def _p(p: float) -> str:
    """One digit is what a p is worth."""
    return "1" if p >= 1 else number(float(f"{p:.0e}")) if p > 0 else "below 1e-300"


def _name(name: str) -> str:
    return shorten(escape(name), _LONGEST)


def _value(value: Scalar) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return shorten(escape(value), _LONGEST) or '""'
    return number(value) if isinstance(value, float) or abs(value) < _NO_FLOAT else shorten(hex(value), _LONGEST)


def _others(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    told = ", ".join(_name(name) for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"; {told}{more} {'parts' if len(names) == 1 else 'part'} the runs in the same way"


def _why_none(contrasts: Contrasts) -> str:
    varying = contrasts.logged - contrasts.constant
    match contrasts.outcome:
        case Outcome.NOTHING_LOGGED:
            return "no hyperparameters were found with these runs (hparams.yaml, config.yaml, parameters of a store)"
        case Outcome.NOTHING_VARIES:
            return f"{_counted(contrasts.logged, 'hyperparameter')} logged, the same in all {contrasts.runs:,} runs"
        case Outcome.ONE_SIDED:
            which = "all runs are sick" if contrasts.sick else "no run is sick"
            return f"{which}: there is nothing to compare"
        case Outcome.TOO_FEW_RUNS:
            return (
                f"too few runs to say what tells them apart ({contrasts.sick:,} sick, {contrasts.healthy:,} healthy, "
                f"{_counted(varying, 'hyperparameter')} that {'varies' if varying == 1 else 'vary'})"
            )
        case _:
            return (
                f"nothing that was logged tells them apart ({_counted(contrasts.tested, 'hyperparameter')}, "
                f"{_counted(contrasts.runs, 'run')})"
            )


def _counted(count: int, noun: str) -> str:
    """`1,500 runs`, as the last line of a scan has it."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
