"""Whether gradients reach every layer of the critic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

import ganlab
from ganlab.pictures import over_depth

# Between the first layer and the last: within one order of magnitude is what the paper calls healthy.
_DECADES = 2.0


class GradientNorms(ganlab.Diagnostic):
    """The norm of the gradient of the critic's loss by layer: it shows whether gradients vanish or explode with depth.

    Gulrajani, Ahmed, Arjovsky, Dumoulin and Courville, "Improved training of Wasserstein GANs" (2017), figure 1b left:
    exponentially up or down under weight clipping, flat under a gradient penalty.

    Figures, for each layer that has a kernel, each replica's too: `activations/<layer>`, the norm of the gradient of an
    example's loss by the layer's output for it, as a mean over real and generated examples; `weights/<layer>`, the norm
    of the gradient of the mean loss by the layer's weights. And `decades_per_layer`, the slope of a line through
    log10 of the former from input to output: above zero where gradients shrink on their way back to the input.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "decades_per_layer": (
            "By how many powers of ten gradients shrink with each layer on their way back to the critic's input: "
            "0 is sound, far above they vanish, far below they explode."
        ),
        "activations/<layer>": "The mean norm of the gradient of an example's loss by this layer's output.",
        "weights/<layer>": "The norm of the gradient of the mean loss by this layer's weights.",
    }

    def __init__(self, *, every: int = 0) -> None:
        """Chooses how often to look.

        Args:
            every: Generator updates between looks; 0 for each evaluation.
        """
        self.every = every

    def look(self, critic: ganlab.CriticView) -> ganlab.Findings:
        """The norms over the batch that comes next, one picture over depth included."""
        layers = [layer for layer in critic.layers if any(critic.weights[name].ndim > 1 for name in layer.weights)]
        if not layers:
            raise ganlab.IncompatibleError(
                "diagnostics.gradient_norms finds no layer with a kernel in this critic: all trainable weights are "
                "scalars or vectors. Drop it from experiment.diagnostics."
            )
        shares = [critic.gradients(i) for i in range(critic.replicas)]
        names = [layer.name for layer in layers]
        activations = np.array([[_mean_norm(share.activations[name]) for name in names] for share in shares])
        flat = [[_joined(share.weights, layer.weights) for layer in layers] for share in shares]
        weights = np.array([[np.linalg.norm(gradient) for gradient in share] for share in flat])
        whole = np.array([np.linalg.norm(np.mean(gradients, axis=0)) for gradients in zip(*flat, strict=True)])

        reduced = activations.mean(axis=0)
        figures = {"decades_per_layer": _slope(reduced)}
        replicas: dict[str, list[float]] = {"decades_per_layer": [_slope(share) for share in activations]}
        for i, name in enumerate(names):
            figures[f"activations/{name}"], figures[f"weights/{name}"] = float(reduced[i]), float(whole[i])
            replicas[f"activations/{name}"] = activations[:, i].tolist()
            replicas[f"weights/{name}"] = weights[:, i].tolist()
        curves = {"by activations": [reduced, *activations], "by weights": [whole, *weights]}
        picture = over_depth(
            curves, names, quantity="gradient norm of the critic's loss", title=f"step {critic.step}, input to output"
        )
        return ganlab.Findings(figures, replicas, pictures={"depth": picture})

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Warns if norms change by more than a hundredfold over the depth."""
        layers = sum(name.startswith("activations/") for name in figures)
        slope = figures["decades_per_layer"]
        if abs(slope) * (layers - 1) <= _DECADES:
            return None
        problem = "vanish: the first layers hardly learn" if slope > 0 else "explode: the first layers learn by leaps"
        limit = "larger" if slope > 0 else "smaller"
        return (
            f"On their way back through {layers} layers the critic's gradients change by a factor of "
            f"{10 ** abs(slope):.2g} a layer: they {problem}. Try experiment.constraints = "
            f"[@constraints.gradient_penalty()], or a {limit} constraints.weight_clipping.limit, or a shallower critic."
        )


def _mean_norm(gradient: np.ndarray) -> float:
    return float(np.linalg.norm(gradient.reshape(len(gradient), -1).astype(np.float64), axis=1).mean())


def _joined(gradients: Mapping[str, np.ndarray], names: tuple[str, ...]) -> np.ndarray:
    return np.concatenate([gradients[name].astype(np.float64).ravel() for name in names])


def _slope(norms: np.ndarray) -> float:
    """By least squares; a norm that is zero in float32 counts as its smallest number."""
    heights = np.log10(np.maximum(norms, np.finfo(np.float32).tiny))
    return float(np.polyfit(np.arange(len(norms)), heights, 1)[0]) if len(norms) > 1 else 0.0
