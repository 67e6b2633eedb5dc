"""Gradients vanish or explode through twelve clipped layers, not through penalized ones (figure 1b, left).

Gulrajani et al., "Improved Training of Wasserstein GANs" (2017): generators and critics of twelve layers on the swiss
roll, clipped at three limits or under the gradient penalty. The figure shows what `diagnostics.gradient_norms` writes:
the mean norm of the gradient of an example's critic loss by the output of each layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ganlab
from reproductions.drawing import COLOURS, GREY, panels, png
from reproductions.report import Claim, Report, Table, number
from reproductions.training import run, timed

LIMITS = (0.1, 0.01, 0.001)
_PENALTY = "gradient penalty"
_FIGURE = "diagnostics/gradient_norms/activations/"


@dataclass(frozen=True)
class Size:
    """The size of the networks and the length of training.

    Attributes:
        width: Units of each hidden layer; 512 in the paper.
        batch: Examples per update; 256 in the paper.
        steps: Generator updates, with five critic updates each.
        seeds: Runs of each.
    """

    width: int
    batch: int
    steps: int
    seeds: int


SIZES = {"quick": Size(256, 128, 500, 2), "full": Size(512, 256, 20_000, 3)}


def reproduce(size: Size) -> Report:
    """Trains under each limit and under the penalty, and fits a line to the logarithm of the norms over depth."""
    norms: dict[str, np.ndarray] = {}
    for name, file, params in _settings():
        found = []
        for seed in range(size.seeds):
            with timed(f"{name}, seed {seed}"), run(file, [*params, *_sizes(size, seed)]) as made:
                found.append(norms_by_layer(made))
        norms[name] = np.array(found)
    rows = [_row(name, seed, line) for name, lines in norms.items() for seed, line in enumerate(lines)]
    header = ["critic", "seed", "first layer", "last hidden layer", "decades a layer", "R²", "largest / smallest"]
    table = Table("Norm of the gradient of the critic's loss by the outputs of its eleven hidden layers:", header, rows)
    return Report([table], list(_claims(norms)), {"gradients": _drawn(norms)})


def norms_by_layer(made: ganlab.Run) -> np.ndarray:
    """The last norms of the diagnostic in a run, from the first hidden layer to the last."""
    last = {record.tag: record.reduced for record in made.metrics() if record.tag.startswith(_FIGURE)}
    return np.array([value for tag, value in last.items() if not tag.endswith("/score")])


def line_through(norms: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """The line of least squares through log10 of the norms.

    Returns:
        Its slope in decades a layer, above zero where gradients shrink on their way back to the input, and the
        coefficient of determination R².
    """
    depth, heights = np.arange(len(norms)), np.log10(np.maximum(norms, np.finfo(np.float32).tiny))
    return float(np.polyfit(depth, heights, 1)[0]), float(np.corrcoef(depth, heights)[0, 1] ** 2)


def _settings() -> Iterator[tuple[str, str, list[str]]]:
    for limit in LIMITS:
        yield f"clipping at {limit:g}", "fig1_deep_clipping", [f"constraints.weight_clipping.limit={limit}"]
    yield _PENALTY, "fig1_deep_penalty", []


def _sizes(size: Size, seed: int) -> list[str]:
    return [
        f"architectures.mlp.width={size.width}",
        f"experiment.batch_size={size.batch}",
        f"experiment.steps={size.steps}",
        f"experiment.seed={seed}",
    ]


def _spread(norms: np.ndarray) -> float:
    return float(norms.max() / max(norms.min(), np.finfo(np.float32).tiny))


def _row(name: str, seed: int, norms: np.ndarray) -> list[str]:
    slope, fit = line_through(norms)
    return [name, str(seed), *map(number, (norms[0], norms[-1])), f"{slope:+.2f}", f"{fit:.3f}", number(_spread(norms))]


def _claims(norms: dict[str, np.ndarray]) -> Iterator[Claim]:
    seeds = f"{len(norms[_PENALTY])} seeds" if len(norms[_PENALTY]) > 1 else "one seed"
    for limit in LIMITS:
        lines = [line_through(line) for line in norms[f"clipping at {limit:g}"]]
        if limit == max(LIMITS):
            steepest = max(slope for slope, _ in lines)
            said = f"clipped at {limit:g}, gradients explode: decades a layer toward the output ({seeds})"
            yield Claim(said, steepest, "at most", -0.15)
        else:
            said = f"clipped at {limit:g}, gradients vanish: decades a layer toward the output ({seeds})"
            yield Claim(said, min(slope for slope, _ in lines), "at least", 0.3)
        yield Claim("and do so exponentially: R² of the line", min(fit for _, fit in lines), "at least", 0.9)
    spread = max(_spread(line) for line in norms[_PENALTY])
    yield Claim(
        f"penalized, they stay within one order of magnitude: largest / smallest ({seeds})", spread, "at most", 10
    )


def _drawn(norms: dict[str, np.ndarray]) -> bytes:
    figure, ((axes,),) = panels(1, 1, width=6, height=4)
    for (name, lines), colour in zip(norms.items(), COLOURS, strict=False):
        for i, line in enumerate(lines):
            depth = np.arange(1, len(line) + 1)
            label: Any = name if i == 0 else None
            axes.plot(depth, np.where(line > 0, line, np.nan), "o-", color=colour, markersize=4, label=label)
    axes.set_yscale("log")
    axes.set_xlabel("hidden layer of the critic, input to output", fontsize=8, color=GREY)
    axes.set_ylabel("gradient norm", fontsize=8, color=GREY)
    axes.set_xticks(range(1, norms[_PENALTY].shape[1] + 1))
    axes.legend(frameon=False, fontsize=8)
    return png(figure)
