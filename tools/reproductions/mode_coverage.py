"""How many modes of a ring and of a grid each constraint covers, by the protocol of PacGAN (Lin et al. 2018).

2,500 samples; one within three standard deviations of a mode is of high quality. A perfect sampler scores 98.9%. The
published rows are of critics without any constraint and of PacGAN's packed ones; networks and training differ from
theirs, so they are for orientation, not a contest. Each constraint is used with the game of its paper and one setting:
nothing was searched for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ganlab.training.graph.sampling import Sampler, sampler
from ganlab.training.graph.trainer import Trainer
from reproductions.drawing import BLUE, GREY, ORANGE, panels, png
from reproductions.report import Claim, Report, Table
from reproductions.training import timed, trained

DATASETS = {"ring": "ring, 8 modes", "grid": "grid, 25 modes"}
_NONE, _PENALTY, _CLIPPING = "none", "gradient penalty", "weight clipping"
_NON_SATURATING = "experiment.loss=@losses.non_saturating()"
# The overrides of each row in the experiment file, which has the gradient penalty. Weights are those of toy
# experiments, a hundredth of the papers' for images; the limit of clipping is the better of 0.01 and 0.1.
SETTINGS: Mapping[str, tuple[str, list[str]]] = {
    _NONE: ("non-saturating", [_NON_SATURATING, "experiment.constraints=[]"]),
    _CLIPPING: (
        "Wasserstein",
        [
            "experiment.constraints=[@constraints.weight_clipping()]",
            "constraints.weight_clipping.limit=0.1",
            "experiment.critic_optimizer=@optimizers.rmsprop()",
            "experiment.generator_optimizer=@optimizers.rmsprop()",
        ],
    ),
    _PENALTY: ("Wasserstein", []),
    "one-sided penalty": (
        "Wasserstein",
        ["experiment.constraints=[@constraints.lipschitz_penalty()]", "constraints.lipschitz_penalty.weight=0.1"],
    ),
    "spectral norm": (
        "hinge",
        ["experiment.loss=@losses.hinge()", "experiment.constraints=[@constraints.spectral_norm()]"],
    ),
    "R1": (
        "non-saturating",
        [_NON_SATURATING, "experiment.constraints=[@constraints.r1()]", "constraints.r1.gamma=0.1"],
    ),
    "DRAGAN": (
        "non-saturating",
        [_NON_SATURATING, "experiment.constraints=[@constraints.dragan()]", "constraints.dragan.weight=0.1"],
    ),
}
FIGURES = ("modes", "high_quality", "reverse_kl")
# Modes, high quality in percent, reverse Kullback-Leibler divergence in nats.
PUBLISHED = {
    "ring": {"GAN, published": ("6.3 ± 0.5", "98.2", "0.45"), "PacGAN2, published": ("7.9 ± 0.1", "95.6", "0.07")},
    "grid": {"GAN, published": ("17.3 ± 0.8", "94.8", "0.70"), "PacGAN4, published": ("24.8 ± 0.2", "93.6", "0.04")},
}


@dataclass(frozen=True)
class Size:
    """The size of the networks and the length of training.

    Attributes:
        width: Units of each of the three hidden layers; 512 in the WGAN-GP paper.
        batch: Examples per update; 256 in the paper.
        steps: Generator updates, with five critic updates each.
        rate: The learning rate, half of it for RMSProp, which falls to zero by a cosine; 1e-4 throughout in the paper.
        seeds: Runs of each.
    """

    width: int
    batch: int
    steps: int
    rate: float
    seeds: int


SIZES = {"quick": Size(128, 128, 2000, 1e-3, 3), "full": Size(512, 256, 30_000, 1e-4, 10)}


def reproduce(size: Size) -> Report:
    """Trains every row on both mixtures."""
    figure, axes = panels(len(DATASETS), len(SETTINGS), width=1.7, height=1.8)
    found: dict[tuple[str, str], np.ndarray] = {}
    for (row, dataset), (column, name) in itertools.product(enumerate(DATASETS), enumerate(SETTINGS)):
        figures = []
        for seed in range(size.seeds):
            with timed(f"{name} on the {dataset}, seed {seed}"):
                trainer = trained("mode_coverage", _params(dataset, name, size, seed))
            sample, data = _sampler(trainer), cast("Any", trainer.experiment.dataset)
            measured = trainer.experiment.evaluators[0].evaluate(sample, data, None)
            figures.append([measured[figure] for figure in FIGURES])
            if seed == 0:
                _draw(axes[row, column], sample(1000, 0), data.modes, f"{name}, {dataset}")
        found[dataset, name] = np.array(figures)
    tables = [_table(dataset, found) for dataset in DATASETS]
    return Report(tables, list(_claims(found)), {"samples": png(figure)})


def interval(values: np.ndarray) -> float:
    """Half the width of the 95% interval of a mean, by Student's t: infinite for one value."""
    from scipy import stats

    if len(values) < 2:
        return math.inf
    return float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))


def _params(dataset: str, name: str, size: Size, seed: int) -> list[str]:
    optimizer, rate = ("rmsprop", size.rate / 2) if name == _CLIPPING else ("adam", size.rate)
    return [
        f"experiment.dataset=@datasets.gaussian_{dataset}()",
        f"experiment.batch_size={size.batch}",
        f"experiment.steps={size.steps}",
        f"experiment.seed={seed}",
        f"architectures.mlp.width={size.width}",
        f"optimizers.{optimizer}.learning_rate={rate}",
        f"optimizers.{optimizer}.schedule='cosine'",
        *SETTINGS[name][1],
    ]


def _sampler(trainer: Trainer) -> Sampler:
    return sampler(trainer.experiment, trainer.state)


def _table(dataset: str, found: Mapping[tuple[str, str], np.ndarray]) -> Table:
    rows = []
    for name, (loss, _) in SETTINGS.items():
        figures = found[dataset, name]
        cells = [
            f"{mean * scale:.{digits}f} ± {interval(figures[:, i]) * scale:.{digits}f}"
            for i, (mean, scale, digits) in enumerate(zip(figures.mean(axis=0), (1, 100, 1), (1, 1, 2), strict=True))
        ]
        rows.append([name, loss, *cells])
    rows += [[name, "", *cells] for name, cells in PUBLISHED[dataset].items()]
    seeds = len(found[dataset, _NONE])
    title = f"{DATASETS[dataset].capitalize()}: mean over {seeds} seeds and 95% interval (Student's t):"
    return Table(title, ["constraint", "loss", "modes", "high quality, %", "reverse KL"], rows)


def _claims(found: Mapping[tuple[str, str], np.ndarray]) -> Iterator[Claim]:
    mean = {key: figures.mean(axis=0) for key, figures in found.items()}
    for dataset, least, most in (("ring", 7.9, 7.0), ("grid", 24.0, 20.0)):
        penalized, none = mean[dataset, _PENALTY], mean[dataset, _NONE]
        yield Claim(f"the gradient penalty finds the modes of the {dataset}", penalized[0], "at least", least)
        yield Claim(f"without a constraint modes of the {dataset} are lost", none[0], "at most", most)
        said = f"{dataset}: reverse KL under the penalty, as a fraction of that without"
        yield Claim(said, penalized[2] / none[2], "at most", 0.5)
        more = penalized[1] - mean[dataset, _CLIPPING][1]
        yield Claim(f"{dataset}: high quality under the penalty, more than under clipping", more, "at least", 0.05)


def _draw(axes: Any, samples: np.ndarray, modes: np.ndarray, title: str) -> None:
    side = 1.3 * float(np.abs(modes).max())
    axes.scatter(*modes.T, s=30, facecolors="none", edgecolors=ORANGE, linewidths=0.7)
    axes.scatter(*samples.T, s=2, c=BLUE, alpha=0.4, linewidths=0)
    axes.set(xlim=(-side, side), ylim=(-side, side), aspect="equal", xticks=[], yticks=[])
    axes.set_title(title, fontsize=6.5, color=GREY)
