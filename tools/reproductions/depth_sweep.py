"""How deep a GAN may be under each constraint: runs that train, by depth and activation.

A small analogue of the 200 random architectures of Gulrajani et al., "Improved Training of Wasserstein GANs" (2017),
section 5.1: generator and critic have equally many equal layers, and learn the 8 Gaussians. A run trains if at its end
the exact Wasserstein-1 distance of its samples from the data is at most half of what it was before the first update.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ganlab.training.graph.sampling import sampler
from ganlab.training.graph.trainer import Trainer
from reproductions.drawing import COLOURS, GREY, panels, png
from reproductions.report import Claim, Report, Table, number
from reproductions.training import started, timed

_CLIPPING, _PENALTY = "weight clipping", "gradient penalty"
# The overrides of each in the experiment file, which has the gradient penalty.
SETTINGS: Mapping[str, list[str]] = {
    _CLIPPING: [
        "experiment.constraints=[@constraints.weight_clipping()]",
        "experiment.critic_optimizer=@optimizers.rmsprop()",
        "experiment.generator_optimizer=@optimizers.rmsprop()",
    ],
    _PENALTY: [],
    "spectral norm": ["experiment.constraints=[@constraints.spectral_norm()]"],
}
DEPTHS, ACTIVATIONS = (4, 8, 12, 20), ("relu", "tanh")
TRAINS = 0.5


@dataclass(frozen=True)
class Size:
    """The size of the networks and the length of training.

    Attributes:
        width: Units of each hidden layer.
        batch: Examples per update.
        steps: Generator updates.
        critic_steps: Critic updates per generator update.
        rate: Adam's learning rate; RMSProp has half of it. Both fall to zero by a cosine.
        seeds: Runs of each.
    """

    width: int
    batch: int
    steps: int
    critic_steps: int
    rate: float
    seeds: int


SIZES = {"quick": Size(64, 64, 800, 2, 1e-3, 1), "full": Size(512, 256, 20_000, 5, 1e-4, 5)}


def reproduce(size: Size) -> Report:
    """Trains every cell and counts those that train."""
    left: dict[tuple[str, str, int], list[float]] = {}
    for name, activation, depth in itertools.product(SETTINGS, ACTIVATIONS, DEPTHS):
        with timed(f"{name}, {activation}, {depth} hidden layers"):
            left[name, activation, depth] = [_left(name, activation, depth, size, seed) for seed in range(size.seeds)]
    rows = []
    for name, activation in itertools.product(SETTINGS, ACTIVATIONS):
        cells = [left[name, activation, depth] for depth in DEPTHS]
        rows.append([name, activation, *(number(float(np.mean(cell))) for cell in cells), _fraction(cells)])
    header = ["constraint", "activation", *(f"{depth} layers" for depth in DEPTHS), "runs that train"]
    table = Table("Distance from the data after training over that before, the mean of the seeds:", header, rows)
    return Report([table], list(_claims(left)), {"depths": _drawn(left)})


def distance(trainer: Trainer) -> float:
    """The exact distance of the generator's current samples from the data."""
    experiment = trainer.experiment
    sample = sampler(experiment, trainer.state)
    return experiment.evaluators[0].evaluate(sample, experiment.dataset, None)["distance"]


def _left(name: str, activation: str, depth: int, size: Size, seed: int) -> float:
    """The fraction of the distance that is left after training."""
    optimizer, rate = ("rmsprop", size.rate / 2) if name == _CLIPPING else ("adam", size.rate)
    trainer = started(
        "depth_sweep",
        [
            *SETTINGS[name],
            f"architectures.mlp.depth={depth}",
            f"architectures.mlp.width={size.width}",
            f"architectures.mlp.activation={activation}",
            f"experiment.batch_size={size.batch}",
            f"experiment.critic_steps={size.critic_steps}",
            f"experiment.steps={size.steps}",
            f"experiment.seed={seed}",
            f"optimizers.{optimizer}.learning_rate={rate}",
            f"optimizers.{optimizer}.schedule=cosine",
        ],
    )
    before = distance(trainer)
    trainer.train(size.steps)
    return distance(trainer) / before


def _trained(values: list[float]) -> int:
    return sum(value <= TRAINS for value in values)


def _fraction(cells: list[list[float]]) -> str:
    return f"{sum(map(_trained, cells))} of {sum(map(len, cells))}"


def _claims(left: Mapping[tuple[str, str, int], list[float]]) -> Iterator[Claim]:
    for name, relation, limit in ((_PENALTY, "at least", 0.9), (_CLIPPING, "at most", 0.3)):
        values = [value for key, cell in left.items() if key[0] == name for value in cell]
        said = f"under {name}, the fraction of {len(values)} runs that train"
        yield Claim(said, _trained(values) / len(values), relation, limit)  # type: ignore[arg-type]


def _drawn(left: Mapping[tuple[str, str, int], list[float]]) -> bytes:
    figure, (axes,) = panels(1, len(ACTIVATIONS), width=3.4, height=3.0, sharey=True)
    for panel, activation in zip(axes, ACTIVATIONS, strict=True):
        for name, colour in zip(SETTINGS, COLOURS, strict=False):
            means = [np.mean(left[name, activation, depth]) for depth in DEPTHS]
            panel.plot(DEPTHS, means, "o-", color=colour, markersize=4, label=name)
        panel.axhline(TRAINS, color=GREY, linewidth=0.8, linestyle=":")
        panel.set(xticks=DEPTHS)
        panel.set_title(activation, fontsize=8, color=GREY)
        panel.set_xlabel("hidden layers", fontsize=8, color=GREY)
    axes[0].set_ylabel("distance left", fontsize=8, color=GREY)
    axes[0].set_ylim(bottom=0)  # shared, so after everything is drawn
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return png(figure)
