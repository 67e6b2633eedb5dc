"""Every constraint's estimate of the Wasserstein-1 distance against the exact one, on three pairs of distributions.

A critic is trained alone between two fixed distributions, with the Wasserstein loss and each constraint's defaults. Its
estimate is the difference of its mean scores; the truth, between the very same points, comes from optimal transport.
Many constraints do not hold the slope to one but to some factor, or let it exceed one by a little. So the estimate is
also given over the largest slope that was found: the remaining error is what the critic did not learn.

Under a gradient penalty of weight w the best critic between distributions that are W apart along parallel lines has not
slope 1 but 1 + W / (2 w): `slope * W - w (slope - 1)^2` is largest there. That is a claim below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import ganlab
from ganlab.plugins import manager as plugins
from ganlab.transport import exact_w1
from reproductions.drawing import BLUE, GREY, ORANGE, panels, png
from reproductions.report import Claim, Report, Table, number
from reproductions.training import composed, timed, trained, view

_IMAGES, _GAUSSIANS, _MIXTURES = "two images", "translated Gaussians", "grid and ring of Gaussians"
_ORTHONORMAL = "bjorck"  # the file's own constraint
_POINTS = 500
_MANY = "architectures.data_plus_noise.examples=65536"
# The overrides of each in the experiment file, which has the two images.
PAIRS: Mapping[str, list[str]] = {
    _IMAGES: [],
    _GAUSSIANS: [
        "real=@datasets.translated_gaussians()",
        "fake=@other/datasets.translated_gaussians()",
        "other/datasets.translated_gaussians.distance=0.0",
        _MANY,
    ],
    _MIXTURES: ["real=@datasets.gaussian_grid()", "fake=@datasets.gaussian_ring()", _MANY],
}
# The critic has rectifiers; the file's sorts pairs of units, which is for orthonormal kernels.
_RECTIFIERS = "architectures.mlp.activation='relu'"
CRITICS: Mapping[str, list[str]] = {_ORTHONORMAL: [], "consistency": [_RECTIFIERS, "architectures.mlp.dropout=0.1"]}


@dataclass(frozen=True)
class Size:
    """The size of the critics and the length of training, five updates per step.

    Attributes:
        width: Units of each of the three hidden layers.
        steps: Steps of each training.
        batch: Examples per update.
        image_steps: Steps of each training on the two images, which are the only examples there.
        image_batch: Examples per update there.
    """

    width: int
    steps: int
    batch: int
    image_steps: int
    image_batch: int


SIZES = {"quick": Size(64, 300, 64, 60, 4), "full": Size(512, 5000, 256, 1000, 16)}


@dataclass(frozen=True)
class Estimate:
    """A critic's estimate for a pair.

    Attributes:
        value: The difference of its mean scores.
        exact: The distance between the same points.
        slope: Its largest slope at the points and between them.
        bound: A certified upper bound of its slope; NaN if there is none.
    """

    value: float
    exact: float
    slope: float
    bound: float

    def row(self, constraint: str) -> list[str]:
        """The estimate as cells of a table."""
        rescaled = _against(self.value / self.slope, self.exact) if self.slope > 0 else ""
        bound = "" if math.isnan(self.bound) else number(self.bound)
        return [constraint, number(self.value), _against(self.value, self.exact), number(self.slope), rescaled, bound]


def reproduce(size: Size) -> Report:
    """Trains a critic under each constraint on each pair."""
    names = sorted(name for kind, name in plugins.current().components if kind == "constraints")
    found: dict[str, dict[str, Estimate]] = {}
    for pair in PAIRS:
        found[pair] = {}
        for name in names:
            with timed(f"{name} on the {pair}"):
                found[pair][name] = _estimated(pair, name, size)
    header = ["constraint", "estimate", "error", "largest slope", "estimate / slope, error", "certified bound"]
    tables = []
    for pair, estimates in found.items():
        exact = next(iter(estimates.values())).exact
        rows = [estimate.row(name) for name, estimate in estimates.items()]
        tables.append(Table(f"{pair[0].upper()}{pair[1:]}, exact distance {exact:.4g}:", header, rows))
    return Report(tables, list(_claims(found)), {"estimates": _drawn(found)})


def measured(critic: ganlab.CriticView) -> Estimate:
    """The critic's estimate between at most 500 real and as many generated points."""
    figures = ganlab.component("diagnostics", "wasserstein_error")(points=_POINTS).look(critic).figures
    real, fake = critic.more(_POINTS)
    between = critic.random().random((len(real),) + (1,) * (real.ndim - 1), np.float32)
    points = np.concatenate([real, fake, between * real + (1 - between) * fake])
    bound = min(critic.bounds.values(), default=math.nan)
    return Estimate(figures["estimate"], figures["exact"], float(critic.slopes(points).max()), bound)


def _against(value: float, exact: float) -> str:
    """The error of a value: relative to the exact one, or as a factor if that is clearer."""
    ratio = value / exact
    return f"{ratio - 1:+.1%}" if 0.1 <= ratio <= 3 else f"{number(ratio)} times"


def _estimated(pair: str, name: str, size: Size) -> Estimate:
    steps, batch = (size.image_steps, size.image_batch) if pair == _IMAGES else (size.steps, size.batch)
    params = [
        *PAIRS[pair],
        *CRITICS.get(name, [_RECTIFIERS]),
        *([] if name == _ORTHONORMAL else [f"experiment.constraints=[@constraints.{name}()]"]),
        f"architectures.mlp.width={size.width}",
        f"experiment.batch_size={batch}",
        f"experiment.steps={steps}",
    ]
    return measured(view(trained("exact_w1", params)))


def _closed_form() -> float:
    """The relative error of the optimal transport's distance between paired points of the translated Gaussians."""
    data: Any = composed("exact_w1", PAIRS[_GAUSSIANS]).dataset
    numbers = np.arange(_POINTS, dtype=np.int64)
    distance = exact_w1(np.asarray(data.examples(numbers, 0)), np.asarray(data.counterpart(numbers, 0)))
    return abs(distance / data.wasserstein - 1)


def _claims(found: Mapping[str, Mapping[str, Estimate]]) -> Iterator[Claim]:
    yield Claim("the oracle on translated Gaussians: error against the closed form", _closed_form(), "at most", 0.01)
    for pair, limit in ((_IMAGES, 0.005), (_GAUSSIANS, 0.01)):
        estimate = found[pair][_ORTHONORMAL]
        said = f"orthonormal kernels and sorted units on the {pair}: error"
        yield Claim(said, abs(estimate.value / estimate.exact - 1), "at most", limit)
    weight = 10.0  # the default of constraints.gradient_penalty
    for pair in (_IMAGES, _GAUSSIANS):
        estimate = found[pair]["gradient_penalty"]
        expected = estimate.exact * (1 + estimate.exact / (2 * weight))
        said = f"the gradient penalty on the {pair}: error against W (1 + W / 20) = {number(expected, 4)}"
        yield Claim(said, abs(estimate.value / expected - 1), "at most", 0.02)
    certified = [e.value / e.bound / e.exact for row in found.values() for e in row.values() if e.bound > 0]
    said = f"estimate / certified bound / exact distance, the largest of {len(certified)}"
    yield Claim(said, max(certified, default=math.nan), "at most", 1.001)


def _drawn(found: Mapping[str, Mapping[str, Estimate]]) -> bytes:
    figure, (axes,) = panels(1, len(found), width=3.4, height=4.2, sharey=True)
    for panel, (pair, estimates) in zip(axes, found.items(), strict=True):
        places = np.arange(len(estimates))
        for colour, label, values in (
            (ORANGE, "estimate", [e.value / e.exact for e in estimates.values()]),
            (BLUE, "estimate / largest slope", [e.value / max(e.slope, 1e-30) / e.exact for e in estimates.values()]),
        ):
            panel.plot(np.clip(values, 1e-3, 1e3), places, "o", color=colour, markersize=4, label=label)
        panel.axvline(1.0, color=GREY, linewidth=0.8)
        panel.set(xscale="log", xlim=(5e-4, 2e3))
        panel.set_yticks(places, list(estimates))
        panel.set_title(pair, fontsize=8, color=GREY)
        panel.set_xlabel("over the exact distance", fontsize=8, color=GREY)
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return png(figure)
