"""Clipped critics are cones over the data; penalized ones see its modes (Gulrajani et al. 2017, figure 1a).

The generator is fixed at data plus unit noise, and only the critic is trained. The paper shows level lines; here they
are measured by how far the critic dips between neighbouring modes (in the swiss roll, across the hollow of its
innermost turn). A concave function, for example a cone, cannot dip; the best critic does, because there are fewer
examples there than generated points.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

import ganlab
from reproductions.drawing import GREY, ORANGE, panels, png
from reproductions.report import Claim, Report, Table, number
from reproductions.training import UPDATES_EACH, timed, trained, view

DATASETS = {"gaussian_ring": "8 Gaussians", "gaussian_grid": "25 Gaussians", "swiss_roll": "swiss roll"}
CONSTRAINTS = {"clipping": "weight clipping", "penalty": "gradient penalty"}
# The paper's window and resolution.
_SIDE, _POINTS = 3.0, 128
_LEVELS = 18


@dataclass(frozen=True)
class Size:
    """The size of the networks and the length of training.

    Attributes:
        width: Units of each of the critic's three hidden layers; 512 in the paper.
        updates: Critic updates.
        penalty_rate: Adam's learning rate under the penalty; 1e-4 in the paper.
        seeds: Runs of each.
    """

    width: int
    updates: int
    penalty_rate: float
    seeds: int


SIZES = {"quick": Size(256, 4000, 5e-4, 2), "full": Size(512, 100_000, 1e-4, 5)}


def reproduce(size: Size) -> Report:
    """Trains every critic, measures its dips, and draws those of the first seed."""
    figure, axes = panels(2, 3, sharex=True, sharey=True)
    rows, dips = [], {}
    for (row, constraint), (column, dataset) in itertools.product(enumerate(CONSTRAINTS), enumerate(DATASETS)):
        for seed in range(size.seeds):
            with timed(f"{CONSTRAINTS[constraint]} on {DATASETS[dataset]}, seed {seed}"):
                critic = _critic(constraint, dataset, seed, size)
            slope = float(critic.slopes(critic.more(1000)[1]).mean())
            dips[constraint, dataset, seed] = dip = dip_between(critic, *neighbours(critic.dataset, dataset), slope)
            rows.append([CONSTRAINTS[constraint], DATASETS[dataset], str(seed), number(slope), number(dip)])
            if seed == 0:
                _draw(axes[row, column], critic, f"{CONSTRAINTS[constraint]}, {DATASETS[dataset]}")
    header = ["constraint", "data", "seed", "mean slope", "dip"]
    table = Table("How far the critic dips between neighbours, 1 at most, and its mean slope:", header, rows)
    return Report([table], list(_claims(dips, size.seeds)), {"surfaces": png(figure)})


def dip_between(critic: ganlab.CriticView, first: np.ndarray, second: np.ndarray, slope: float) -> float:
    """The mean dip over all pairs: how much lower the critic is half way between neighbours than at them.

    In units of the most that a critic of the slope could dip, the slope times half the distance: 1 for a critic that
    falls and rises as steeply as that, 0 for a plane, below 0 for a concave function.
    """
    ends = (critic.scores(first) + critic.scores(second)) / 2
    most = slope * np.linalg.norm(first - second, axis=1) / 2
    return float(np.mean((ends - critic.scores((first + second) / 2)) / most))


def neighbours(data: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of neighbouring modes, or of points of the swiss roll that face each other: twice `(pairs, 2)`."""
    if name == "swiss_roll":
        # The sheet is (t cos t, t sin t) / 7.5 for t from 1.5 to 4.5 pi. Its first quarter turn faces what lies half a
        # turn on, across the hollow that the innermost turn goes around.
        t = np.linspace(1.5 * np.pi, 2.0 * np.pi, 64, dtype=np.float32)[:, None]
        ray = np.concatenate([np.cos(t), np.sin(t)], axis=1) / 7.5
        return t * ray, -(t + np.float32(np.pi)) * ray
    distances = np.linalg.norm(data.modes[:, None] - data.modes[None], axis=2)
    least = distances[distances > 0].min()
    first, second = np.nonzero(np.triu(distances < 1.01 * least, k=1))
    return data.modes[first], data.modes[second]


def _critic(constraint: str, dataset: str, seed: int, size: Size) -> ganlab.CriticView:
    params = [
        f"data=@datasets.{dataset}()",
        f"architectures.mlp.width={size.width}",
        f"experiment.steps={size.updates // UPDATES_EACH}",
        f"experiment.seed={seed}",
    ]
    if constraint == "penalty":
        params.append(f"optimizers.adam.learning_rate={size.penalty_rate}")
    return view(trained(f"fig1_surfaces_{constraint}", params))


def _draw(axes: Any, critic: ganlab.CriticView, title: str) -> None:
    along = np.linspace(-_SIDE, _SIDE, _POINTS, dtype=np.float32)
    points = np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)
    axes.contour(along, along, critic.scores(points).reshape(_POINTS, _POINTS), _LEVELS, cmap="viridis")
    real, _ = critic.more(400)
    axes.scatter(*real.T, s=5, c=ORANGE, linewidths=0)
    axes.set_title(title, fontsize=8, color=GREY)
    axes.set(xlim=(-_SIDE, _SIDE), ylim=(-_SIDE, _SIDE), aspect="equal")


def _claims(dips: dict[tuple[str, str, int], float], seeds: int) -> Any:
    for dataset, shown in DATASETS.items():
        clipped = max(dips["clipping", dataset, seed] for seed in range(seeds))
        penalized = min(dips["penalty", dataset, seed] for seed in range(seeds))
        yield Claim(f"clipped critics do not dip on the {shown} (the largest of {seeds} seeds)", clipped, "at most", 0)
        yield Claim(f"penalized ones do on the {shown} (the least of {seeds} seeds)", penalized, "at least", 0.05)
