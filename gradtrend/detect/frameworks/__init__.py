"""Frameworks: what each is called, what kind it is of, and the options by which it takes an action.

What is not known of one is said in general words.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.detect.frameworks.framework import KINDS, Framework
from gradtrend.detect.frameworks.language import LANGUAGE
from gradtrend.detect.frameworks.libraries import LIBRARIES
from gradtrend.detect.frameworks.speech_and_control import SPEECH_AND_CONTROL
from gradtrend.detect.frameworks.vision import VISION

FRAMEWORKS: Mapping[str, Framework] = {**LANGUAGE, **VISION, **SPEECH_AND_CONTROL, **LIBRARIES}
UNKNOWN = Framework("the framework")


def framework_of(name: str | None) -> Framework:
    """The framework of a name that a log gave away; one without options for any other."""
    return FRAMEWORKS.get(name or "", UNKNOWN)


__all__ = ["FRAMEWORKS", "KINDS", "Framework", "framework_of"]
