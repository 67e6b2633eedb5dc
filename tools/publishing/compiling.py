"""Compiles the files of gin/published at their full width and batch, for TPU slices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ganlab_plan import Plan, place, plan
from ganlab_verify.report import Source

from ganlab.plugins.recipes import Recipe
from publishing.datasets import data

GREY_IMAGES = Path(__file__).with_name("grey_images.py")

# Most of these experiments had one GPU. This is the smallest square of chips.
NEAREST = ("v5e:2x2",)
SLICES = {
    # google/compare_gan recommends 128 cores of a v3.
    "biggan_imagenet128": ("v3:8x8", "v5e:8x8", "v4:4x4x4"),
    "biggan_imagenet128_256x8": ("v5e:8x8", "v4:4x4x4"),
    "biggan_deep_imagenet128": ("v5e:8x8", "v4:4x4x4"),
    # The authors had eight GPUs.
    "r3gan_cifar10": ("v4:2x2x2",),
    # Batches of 50 divide over two.
    "diff_augment_cifar10": ("v5e:1x2",),
    "wgan_gp_mnist": ("v5e:1x2",),
    "wgan_mnist": ("v5e:1x2",),
}


def settings(experiment: Recipe) -> list[str]:
    """The settings that give an experiment images of its shape and its number of classes, and change nothing else."""
    images = data(experiment)
    found = [f"{images.place}=@datasets.grey_images()"]
    shape = {"side": images.side, "channels": images.channels, "classes": images.classes}
    return [*found, *(f"datasets.grey_images.{name}={value}" for name, value in shape.items())]


def compiled(
    name: str, experiment: Recipe, topologies: Sequence[str], params: Sequence[str], *, install: bool, optimize: bool
) -> list[Plan]:
    """Compiles an experiment's step for slices.

    Args:
        name: The file, without folder and ending.
        experiment: What it says.
        topologies: The slices; none for those that suit the file.
        params: Further settings.
        install: Whether to install the TPU compiler if it is missing.
        optimize: Whether it optimizes as for a run.
    """
    source = Source((f"published/{name}",), (*settings(experiment), *params), (), str(GREY_IMAGES))
    return plan(
        source, [place(one) for one in topologies or SLICES.get(name, NEAREST)], install=install, optimize=optimize
    )


def row(name: str, found: Plan) -> str:
    """A row of docs/published.md's table: what a core needs, or why the step cannot be compiled."""
    cells = [name, found.topology, str(found.replicas), f"{found.batch_size:,}"]
    if found.cost is None:
        return _line([*cells, f"cannot be compiled: {' '.join(found.notes)}", "", "", "", "", ""])
    cost = found.cost
    cells.append(f"{cost.memory / 2**30:.3g} of {found.capacity / 2**30:.3g} GiB")
    cells += [_number(cost.flops / 1e9), str(cost.all_reduces), _number(cost.reduced / 1e6)]
    spent = f"{_number(1e3 * found.time.total)} ms" if found.time else "none"
    return _line([*cells, spent, found.limit or ""])


def _number(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
