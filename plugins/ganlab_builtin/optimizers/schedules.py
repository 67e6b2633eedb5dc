"""A learning rate that falls over the run. Importing this imports Keras."""

from __future__ import annotations

import math
from typing import Any, Literal

import keras

import ganlab


@keras.saving.register_keras_serializable(package="ganlab")
class Decay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that falls from its start to a fraction of it, and stays there.

    With p the share of `decay_steps` that is over, at most 1, and f the final fraction, the rate is the start times
    `f + (1 - f) g(p)`: `g(p) = 1 - p` for "linear", and `g(p) = (1 + cos(pi p)) / 2` for "cosine" (Loshchilov and
    Hutter, "SGDR", 2017, equation 5, without restarts).
    """

    def __init__(
        self,
        *,
        start: float,
        shape: Literal["cosine", "linear"],
        decay_steps: int | None = None,
        final_fraction: float = 0.0,
    ) -> None:
        """Keeps the curve.

        Args:
            start: The learning rate at update 0.
            shape: Which way it falls.
            decay_steps: The optimizer's updates until it has fallen. None stands for the whole run: whoever knows how
                many updates that is fills it in the config and makes the schedule anew.
            final_fraction: The share of the start that is left in the end.
        """
        self.start, self.shape, self.decay_steps, self.final_fraction = start, shape, decay_steps, final_fraction

    def __call__(self, step: Any) -> Any:
        """The learning rate at this update, a float32 scalar tensor."""
        if self.decay_steps is None:
            raise ganlab.ConfigError(
                "The learning rate's decay_steps is None, which stands for the whole run, and nothing said how many "
                "updates that is. ganlab.train fills it in; elsewhere, give the optimizer decay_steps, a whole number."
            )
        progress = keras.ops.minimum(keras.ops.cast(step, "float32") / float(self.decay_steps), 1.0)
        falling = 1.0 - progress if self.shape == "linear" else 0.5 * (1.0 + keras.ops.cos(math.pi * progress))
        return self.start * (self.final_fraction + (1.0 - self.final_fraction) * falling)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this schedule again."""
        return {
            "start": self.start,
            "shape": self.shape,
            "decay_steps": self.decay_steps,
            "final_fraction": self.final_fraction,
        }
