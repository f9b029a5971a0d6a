"""Frameworks: what each is called, what kind it is of, and the options by which it takes an action.

What is not known of one is said in general words.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gradtrend.detect.frameworks.framework import KINDS, Framework

UNKNOWN = Framework("the framework")


@cache
def frameworks() -> Mapping[str, Framework]:
    """All that are known, by the name that `Settings.framework` has; loaded for a log that one of them wrote."""
    from gradtrend.detect.frameworks.language import LANGUAGE
    from gradtrend.detect.frameworks.libraries import LIBRARIES
    from gradtrend.detect.frameworks.speech_and_control import SPEECH_AND_CONTROL
    from gradtrend.detect.frameworks.vision import VISION

    return {**LANGUAGE, **VISION, **SPEECH_AND_CONTROL, **LIBRARIES}


def framework_of(name: str | None) -> Framework:
    """The framework of a name that a log gave away; one without options for any other."""
    return UNKNOWN if name is None else frameworks().get(name, UNKNOWN)


__all__ = ["KINDS", "Framework", "framework_of", "frameworks"]
