"""A trace of some iterations by TensorFlow's profiler."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from ganlab.errors import ConfigError
from ganlab.training.actions.action import Action, Moment


class Span(NamedTuple):
    """The iterations to trace: those after step `first`, up to step `last`."""

    first: int
    last: int


def span(text: str) -> Span:
    """The iterations that a text such as `20..25` means: those after step 20 up to step 25."""
    found = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", text)
    if found is None or int(found[1]) >= int(found[2]):
        raise ConfigError(
            f"--profile {text!r} must be two steps, the first below the second: --profile 20..25 traces the iterations "
            "after step 20 up to step 25."
        )
    return Span(int(found[1]), int(found[2]))


class Profile(Action):
    """Traces the iterations of a span into the run's folder, where TensorBoard's profiler finds them.

    Rows and weights are those of a run without it: chunks end where the span begins and ends, which no number depends
    on.
    """

    def __init__(self, wanted: Span | None, folder: Path, say: Callable[[str], None]) -> None:
        """Prepares the trace."""
        self._wanted, self._folder, self._say, self._tracing = wanted, folder, say, False

    def next(self, step: int) -> int | None:
        """The next end of the span."""
        return next((at for at in self._wanted or () if at > step), None)

    def due(self, now: Moment) -> bool:
        """Whether the span begins or ends, or training does."""
        if self._wanted is None:
            return False
        return now.step == self._wanted.first or (self._tracing and (now.last or now.step >= self._wanted.last))

    def __call__(self, now: Moment) -> None:
        """Begins or ends the trace."""
        if self._tracing:
            self.stop()
        elif not now.last:
            self.start()

    def begin(self, step: int, steps: int) -> None:
        """Begins the trace where training begins inside the span, or says that it will not come."""
        if self._wanted is None:
            return
        if self._wanted.last <= step or self._wanted.first >= steps:
            first, last = self._wanted
            self._say(f"No profile of {first}..{last}: this training is from step {step} to step {steps}.")
            self._wanted = None
        elif self._wanted.first <= step:
            self.start()

    def start(self) -> None:
        """Begins the trace. A profiler that is in use or missing is a message, and no reason to stop training."""
        try:
            tf.profiler.experimental.start(str(self._folder))
        except (tf.errors.OpError, RuntimeError, OSError) as error:
            self._say(f"No profile: {error}")
            self._wanted = None
        else:
            self._tracing = True

    def stop(self) -> None:
        """Ends the trace, if there is one, and says where it is."""
        if not self._tracing:
            return
        self._tracing = False
        try:
            tf.profiler.experimental.stop()
        except (tf.errors.OpError, RuntimeError, OSError) as error:
            self._say(f"No profile: {error}")
        else:
            self._say(f"Profile: {self._folder / 'plugins' / 'profile'}, which TensorBoard shows with its profiler.")
        self._wanted = None
