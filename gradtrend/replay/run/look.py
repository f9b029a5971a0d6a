"""What one operator of a run is given, found by its module, its name and how often it ran before."""

from __future__ import annotations

from typing import Any

from gradtrend.model.replay import Magnitude, Origin
from gradtrend.replay.run.watch import OperatorWatch


class InputLook(OperatorWatch):
    """Entered around a run: `given` is then what the operator of `origin` was given there, () where it did not run."""

    def __init__(self, model: Any, origin: Origin) -> None:
        super().__init__(model, {})
        self.given: tuple[Magnitude, ...] = ()
        self._wanted = (origin.module, origin.operator, origin.occurrence)

    def seen(self, place: tuple[str, str, int], args: Any, kwargs: dict[str, Any]) -> None:
        """Called for every operator, with its place."""
        if place == self._wanted and not self.given:
            self.given = self.ranges_of(args, kwargs)
