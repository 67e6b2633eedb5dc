"""Units of the critic that do no work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

import ganlab

# Where each kind of nonlinearity is flat, or nearly flat, by its input.
_NEVER_POSITIVE = ("relu", "relu6", "leaky_relu", "prelu", "elu", "selu", "celu")
_CENTRES = {"tanh": (0.0, 1.0), "sigmoid": (0.5, 0.5), "softsign": (0.0, 1.0)}
_SATURATED, _MOSTLY = 0.99, 0.5


class Units(ganlab.Diagnostic):
    """Units that are dead or saturated: whose output is on one flat piece of their nonlinearity for every example.

    A unit is one of a dense layer, or a channel of a convolution at all its places. Figures, by layer: after rectifiers
    `dead/<layer>`, the fraction of units that are positive for no example; after tanh, sigmoid and softsign
    `saturated/<layer>`, the fraction that are within 1% of their limits for every example.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "dead/<layer>": (
            "The fraction of this layer's rectified units that are positive for no example: those of relu learn "
            "nothing, those of leaky_relu are linear. Above a half is complained of."
        ),
        "saturated/<layer>": (
            "The fraction of this layer's units that are within 1% of the ends of their nonlinearity for every "
            "example: they hardly learn."
        ),
    }

    def __init__(self, *, every: int = 0) -> None:
        """Chooses how often to look.

        Args:
            every: Generator updates between looks; 0 for each evaluation.
        """
        self.every = every

    def look(self, critic: ganlab.CriticView) -> ganlab.Findings:
        """The units' outputs for the real and generated examples of the batch that comes next."""
        layers = [layer for layer in critic.layers if layer.activation in (*_NEVER_POSITIVE, *_CENTRES)]
        if not layers:
            raise ganlab.IncompatibleError(
                "diagnostics.units finds no layer in this critic whose units could be dead or saturated; it knows "
                f"{', '.join((*_NEVER_POSITIVE, *_CENTRES))}. Drop it from experiment.diagnostics."
            )
        outputs = critic.activations(np.concatenate([critic.real, critic.fake]))
        figures = {}
        for layer in layers:
            units = outputs[layer.name].reshape(-1, outputs[layer.name].shape[-1])
            if layer.activation in _CENTRES:
                centre, reach = _CENTRES[layer.activation]
                idle = (np.abs(units - centre) >= _SATURATED * reach).all(axis=0)
                figures[f"saturated/{layer.name}"] = float(idle.mean())
            else:
                figures[f"dead/{layer.name}"] = float((units <= 0).all(axis=0).mean())
        return ganlab.Findings(figures)

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Warns of the layer with most idle units, if those are more than half."""
        name, fraction = max(figures.items(), key=lambda item: item[1])
        if fraction <= _MOSTLY:
            return None
        kind, _, layer = name.partition("/")
        return (
            f"{fraction:.0%} of the units of the critic's layer {layer} are {kind} for every example. Try a smaller "
            "learning rate of experiment.critic_optimizer, or, after relu, a nonlinearity that is never flat, for "
            "example architectures.mlp.activation = 'leaky_relu'."
        )
