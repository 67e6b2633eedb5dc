"""Clipped weights pile up at the limits, penalized ones nowhere (Gulrajani et al. 2017, figure 1b, right).

The paper shows two histograms: of weights clipped at 0.01, and of penalized ones. Most of a wide layer's initial
weights, which He's uniform distribution puts within sqrt(6 / width), lie outside that limit and are clipped before the
first update. So a third critic is clipped at just that bound, where few weights lie initially: it shows where training
moves them. The critics are those of figure 1a on the swiss roll, trained alone to near their optimum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import ganlab
from reproductions.drawing import BLUE, GREY, panels, png
from reproductions.report import Claim, Report, Table, number
from reproductions.training import UPDATES_EACH, started, timed, view

# The range of the histograms, which leave out the largest hundredth: without limits, single weights lie far out.
_BINS, _DRAWN = 101, 0.99
_PAPER, _BOUND, _PENALTY = "clipping at 0.01", "clipping at the initial bound", "gradient penalty"


@dataclass(frozen=True)
class Size:
    """The size of the networks and the length of training.

    Attributes:
        width: Units of each of the critic's three hidden layers; 512 in the paper.
        updates: Critic updates.
        penalty_rate: Adam's learning rate under the penalty; 1e-4 in the paper.
    """

    width: int
    updates: int
    penalty_rate: float


SIZES = {"quick": Size(256, 4000, 5e-4), "full": Size(512, 100_000, 1e-4)}


def reproduce(size: Size) -> Report:
    """Trains the three critics and draws the histograms of their weights."""
    figure, (axes,) = panels(1, 3, width=3.4, height=2.8)
    rows, fractions = [], {}
    for panel, (name, file, params) in zip(axes, _settings(size), strict=True):
        with timed(name):
            trainer = started(file, params)
            before = at_largest(view(trainer))
            trainer.train(trainer.experiment.steps)
        after = at_largest(view(trainer))
        fractions[name] = before, after
        weights = np.concatenate([weight.ravel() for weight in view(trainer).weights.values()])
        rows.append([name, number(float(np.abs(weights).max())), f"{before:.2%}", f"{after:.2%}"])
        side = float(np.quantile(np.abs(weights), _DRAWN))
        panel.hist(weights, np.linspace(-side, side, _BINS + 1), density=True, color=BLUE)
        panel.set_title(name, fontsize=8, color=GREY)
        panel.set_yticks([])
        panel.set_xticks([-side, 0, side], [number(-side), "0", number(side)])
    header = ["critic", "largest weight", "before training", "after"]
    table = Table("Fraction of the critic's weights within 1% of the largest:", header, rows)
    return Report([table], list(_claims(fractions)), {"weights": png(figure)})


def at_largest(critic: ganlab.CriticView) -> float:
    """The fraction of weights within 1% of the largest, as in `diagnostics.weights`."""
    return ganlab.component("diagnostics", "weights")().look(critic).figures["at_largest"]


def _settings(size: Size) -> Iterator[tuple[str, str, list[str]]]:
    sizes = [
        "data=@datasets.swiss_roll()",
        f"architectures.mlp.width={size.width}",
        f"experiment.steps={size.updates // UPDATES_EACH}",
    ]
    bound = math.sqrt(6 / size.width)
    yield _PAPER, "fig1_surfaces_clipping", [*sizes, "constraints.weight_clipping.limit=0.01"]
    yield _BOUND, "fig1_surfaces_clipping", [*sizes, f"constraints.weight_clipping.limit={bound}"]
    yield _PENALTY, "fig1_surfaces_penalty", [*sizes, f"optimizers.adam.learning_rate={size.penalty_rate}"]


def _claims(fractions: dict[str, tuple[float, float]]) -> Iterator[Claim]:
    said = "of the weights clipped at 0.01, the fraction at the limits after training"
    yield Claim(said, fractions[_PAPER][1], "at least", 0.5)
    before, after = fractions[_BOUND]
    yield Claim("clipped at the initial bound, by how much training multiplies it", after / before, "at least", 5)
    yield Claim("penalized, the fraction at the largest weight", fractions[_PENALTY][1], "at most", 1e-3)
