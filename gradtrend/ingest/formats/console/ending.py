"""How a console log ends: with the trainer's own word that it stopped on NaN, or with a crash."""

from __future__ import annotations

import re

from gradtrend.ingest.reading.last_words import AT_ITS_LIMIT, LEFT_OUT, LOGGED
from gradtrend.model.runlog import Note

_BAD = rb"(?:nan|inf(?:inite)?|not finite|non-?finite)"
# What trainers say of the loss when they stop on it.
_OF_LOSS = (
    rb"loss (?:is|was|became|becomes?)\W{1,3}-?" + _BAD + rb"\b",  # DETR, timm, MAE, detectron2, mmengine
    rb"non-?finite loss|(?:nan|inf) loss (?:during|detected|encountered)|NanLossDuringTrainingError",  # TF's Estimator
    rb"loss ?tensor is (?:inf|nan)",  # its Object Detection API
    rb"invalid loss, terminating",  # Keras's TerminateOnNaN
    rb"loss (?:has )?exploded(?!"
    + AT_ITS_LIMIT
    + rb")|loss is NAN or INF|loss returned in .{1,40} is (?:nan|inf)",  # Tacotron, MindSpore, Lightning
)
_OF_ANYTHING = (
    rb"nan(?:s| or infs?)? detected|detected (?:nan|inf)|found (?:nan|inf)s? in",
    rb"minimum loss scale reached|loss scale already at minimum|grad_scale is too small",  # fairseq, DeepSpeed, icefall
    rb"contains? (?:inf|nan)(?:/(?:inf|nan))?\b|contains either .inf., .nan.",  # detectron2's boxes, torch.multinomial
    rb"tensor had (?:nan|inf)|: (?:nan|inf) in |there are .?nan.? or .?inf",  # CheckNumerics, Paddle
    rb"gradient exploded|magnitude of gradient is bad",  # dynet
    rb"normal expects all elements of std|to satisfy the constraint .{0,200}found invalid values",  # a policy of NaN
    rb"returned nan values in its \d+th output|invalid value \(nan\) encountered",  # detect_anomaly, and JAX's
    rb"training has diverged|gradients? (?:is|are|was) (?:not|non-?)\s?finite",
)
_STOPPED = re.compile(
    rb"(?:^|(?<=\r))[^\r\n]*?(?P<said>(?P<loss>"
    + rb"|".join(_OF_LOSS)
    + rb")|"
    + rb"|".join(_OF_ANYTHING)
    + rb")[^\r\n]*",
    re.IGNORECASE | re.MULTILINE,
)
_STEP = re.compile(rb"\b(?:global[ _]?step|iteration|iter|step|update)s?\s*[=:#]?\s*(\d{1,15})\b", re.IGNORECASE)
# A term of the loss and its value, as detectron2 prints them behind its error.
_TERM = re.compile(rb"'(\w*loss\w*)': (?:tensor\()?(-?nan|-?inf|-?\d[\d.e+-]*)", re.IGNORECASE)
_TRACEBACK = re.compile(rb"Traceback \(most recent call last\):")
_ERROR = re.compile(rb"^[^\S\r\n]*(?:\[[^\]\r\n]*\]:?\s*)?([\w.]*(?:Error|Exception)\b[^\r\n]*)", re.MULTILINE)
_LONGEST = 200  # characters of a message that are repeated


def ending(name: str, end: bytes) -> tuple[Note, ...]:
    """What the last lines of the log of that name, `end`, say of its end."""
    said = [match for match in _STOPPED.finditer(end) if not LEFT_OUT.search(match.group())]
    stopped = next((m for m in reversed(said) if not LOGGED.search(end, m.end())), None)
    if stopped is not None:
        return (_stop(name, stopped, end),)
    if _TRACEBACK.search(end) is None:
        return ()
    errors = _ERROR.findall(end)
    message = _shown(errors[-1]) if errors else "a traceback"
    return (Note("crashed", f"{name} ends with: {message}"),)


def _stop(name: str, stopped: re.Match[bytes], end: bytes) -> Note:
    """The note of a stop: what was said, the step that it names, and which terms of the loss are not finite."""
    terms = _TERM.findall(end, stopped.end())
    bad = [name.decode() for name, value in terms if value.lstrip(b"-").lower() in (b"nan", b"inf")]
    of_terms = f" ({', '.join(bad)} of {len(terms)} terms not finite)" if bad and len(bad) < len(terms) else ""
    return Note(
        "stopped-on-nan",
        f"{name} ends with: {_shown(stopped.group())}{of_terms}",
        first_step=_step_named(stopped.group(), stopped.start("said") - stopped.start()),
        details="loss" if stopped["loss"] else "",
    )


def _step_named(line: bytes, at: int) -> int | None:
    """The step that a message at that place of a line names, behind it or before; none of an epoch's."""
    if b"epoch" in line.lower():
        return None
    steps = [*_STEP.finditer(line)]
    step = next((match for match in steps if match.start() >= at), steps[-1] if steps else None)
    return int(step[1]) if step is not None else None


def _shown(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").strip()[:_LONGEST].rstrip(".")
