"""Underflow/overflow reports: the culprit is found, several reports in a file, traces, cut files."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.captures.overflow_reports import (
    find_overflow_reports,
    parse_overflow_reports,
    read_overflow_reports,
)
from tests.places import LIGHTLY

BROKEN = (LIGHTLY / "broken_uo" / "debug" / "underflow_overflow_rank0.log").read_text()
FROM_START = (LIGHTLY / "uo_realfp16" / "debug" / "underflow_overflow_rank0.log").read_text()
TRACE = """

                  *** Starting batch number=1 ***
abs min  abs max  metadata
                  shared Embedding
1.01e-06 7.92e+02 weight
0.00e+00 2.47e+04 input[0]
5.36e-05 7.92e+02 output
                  decoder T5Stack
     not a tensor output
             None output[1]
                   T5ForConditionalGeneration
0.00e+00 2.52e+01 output
"""


def test_culprit_of_a_lightly_train_report() -> None:
    (report,) = find_overflow_reports(LIGHTLY / "broken_uo")
    assert report.path == "debug/underflow_overflow_rank0.log"
    assert (report.batch, report.detected, report.rank) == (0, True, 0)
    assert report.module == "_forward_module.model.backbone._features.layer2.1.relu"
    assert report.module_class == "UnstableReLU"
    assert [(frame.tensor, frame.abs_min, frame.abs_max) for frame in report.frames] == [
        ("input[0]", 9.09e-06, 11.8),
        ("output", 0.0, math.inf),
    ]
    assert report.largest_before == 109.0


def test_header_within_the_frames_and_nan() -> None:
    (report,) = parse_overflow_reports(FROM_START, "x", 3)
    assert (report.batch, report.rank, report.module_class) == (0, 3, "Conv2d")
    assert report.module == "_forward_module.module.model.backbone._features.conv1"
    assert math.isnan(report.frames[-1].abs_max)
    assert report.largest_before is None


def test_several_reports_in_one_file() -> None:
    second = BROKEN.replace("batch_number=0", "batch_number=17")
    reports = parse_overflow_reports(BROKEN + TRACE + "\n\n\n" + FROM_START + second, "x")
    assert [(report.batch, report.detected) for report in reports] == [(0, True), (1, False), (0, True), (17, True)]
    assert reports[1].module is None
    assert reports[3].module_class == "UnstableReLU"


def test_trace_with_a_non_finite_value_names_the_first_module() -> None:
    trace = TRACE.replace("0.00e+00 2.47e+04 input[0]", "0.00e+00      inf input[0]").replace("2.52e+01", "     nan")
    (report,) = parse_overflow_reports(trace, "x")
    assert (report.detected, report.batch, report.module) == (True, 1, "shared")


def test_consecutive_traces() -> None:
    reports = parse_overflow_reports(TRACE + TRACE.replace("number=1", "number=2"), "x")
    assert [report.batch for report in reports] == [1, 2]


def test_root_module_has_an_empty_name() -> None:
    text = TRACE.replace("2.52e+01 output", "     inf output")
    (report,) = parse_overflow_reports(text, "x")
    assert (report.module, report.module_class, report.largest_before) == ("", "T5ForConditionalGeneration", 24700.0)


def test_within_a_console_log_under_torchrun() -> None:
    console = f"step 3 loss 2.1\n{BROKEN}Traceback (most recent call last):\n  File x, line 3\nstep 4 loss nan\n"
    prefixed = "\n".join(f"[rank1]: {line}" for line in console.splitlines())
    for text in (console, prefixed):
        (report,) = parse_overflow_reports(text, "console.log")
        assert report.module_class == "UnstableReLU"


def test_cut_before_the_culprit_still_gives_the_batch() -> None:
    cut = BROKEN[: BROKEN.index("layer2.0.conv1")]
    (report,) = parse_overflow_reports(cut, "x")
    assert (report.batch, report.detected, report.module, report.frames) == (0, True, None, ())


@given(st.integers(0, len(BROKEN)), st.binary(max_size=30))
def test_any_cut_and_junk(cut: int, junk: bytes) -> None:
    text = BROKEN[:cut] + junk.decode("utf-8", "replace")
    for report in parse_overflow_reports(text + "\n" + FROM_START, "x"):
        assert report.batch >= 0


def test_crlf() -> None:
    (report,) = parse_overflow_reports(BROKEN.replace("\n", "\r\n"), "x")
    assert report.module_class == "UnstableReLU"


def test_ranks_in_numeric_order_and_unreadable_ones_left_out(tmp_path: Path) -> None:
    debug = tmp_path / "debug"
    debug.mkdir()
    for rank in (10, 2):
        (debug / f"underflow_overflow_rank{rank}.log").write_text(BROKEN)
    (debug / "underflow_overflow_rank5.log").mkdir()
    assert [report.rank for report in find_overflow_reports(tmp_path)] == [2, 10]
    with pytest.raises(InputError, match="cannot read"):
        read_overflow_reports(debug / "underflow_overflow_rank5.log", "x")


def test_no_reports(tmp_path: Path) -> None:
    assert find_overflow_reports(tmp_path) == ()
    assert parse_overflow_reports("", "x") == ()
    assert parse_overflow_reports("  indented text\nabs\n", "x") == ()


@pytest.mark.parametrize("header", [True, False])
def test_a_root_module_is_reported_under_the_next_batch_s_number(header: bool) -> None:
    frames = TRACE.replace("2.52e+01 output", "     inf output").replace("number=1", "number=6")
    text = "output has infs\n\nDetected inf/nan during batch_number=7\nLast 3 forward frames:\n"
    text += frames if header else frames.split("metadata\n")[1]
    (report,) = parse_overflow_reports(text, "console.log")
    assert (report.batch, report.module_class) == (6, "T5ForConditionalGeneration")


def test_magnitudes_of_a_real_network(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines as Hugging Face's class prints them, by hooks on a network that overflows in its second layer."""
    import torch

    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    torch.nn.init.ones_(network[0].weight)
    torch.nn.init.constant_(network[1].weight, 3e38)
    frames: list[str] = []

    def magnitudes(tensor: torch.Tensor, name: str) -> str:
        return f"{tensor.abs().min():8.2e} {tensor.abs().max():8.2e} {name}"

    for name, module in network.named_children():

        def hook(module: torch.nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor, name: str = name) -> None:
            lines = [f"{'':17} {name} {module.__class__.__name__}"]
            lines += [magnitudes(parameter, label) for label, parameter in module.named_parameters(recurse=False)]
            frames.extend([*lines, magnitudes(inputs[0], "input[0]"), magnitudes(output, "output")])

        module.register_forward_hook(hook)
    network(torch.full((1, 2), 1e3))
    print("\nDetected inf/nan during batch_number=4\nLast 2 forward frames:\nabs min  abs max  metadata")
    print("\n".join(frames), "\n\n\n")
    (report,) = parse_overflow_reports(capsys.readouterr().out, "console.log")
    assert (report.batch, report.module, report.module_class) == (4, "1", "Linear")
    assert [frame.tensor for frame in report.frames] == ["weight", "bias", "input[0]", "output"]
    assert report.frames[-1].abs_max == math.inf
    assert report.largest_before is not None
    assert report.largest_before >= 1e3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "debug").mkdir()
    os.mkfifo(tmp_path / "debug" / "underflow_overflow_rank0.log")
    assert find_overflow_reports(tmp_path) == ()
