"""Slices, and the cost of an iteration on a chip of theirs by its batch."""

from __future__ import annotations

from dataclasses import dataclass

from ganlab_plan.places import place
from ganlab_plan.times import Cost

# By Google Cloud's name: a v5e is counted in chips, a v5p in TensorCores, of which a chip has two.
SLICES = {
    "v5e-4": place("v5e:2x2"),
    "v5e-16": place("v5e:4x4"),
    "v5e-64": place("v5e:8x8"),
    "v5e-256": place("v5e:16x16"),
    "v5p-8": place("v5p:2x2x1"),
    "v5p-64": place("v5p:2x4x4"),
    "v5p-256": place("v5p:4x4x8"),
    "v5p-1024": place("v5p:8x8x8"),
}


@dataclass(frozen=True)
class Costs:
    """Costs that grow linearly with the chip's batch, through two that were compiled.

    Attributes:
        small: The smaller batch on a chip.
        large: The larger.
        least: The cost of the smaller.
        most: The cost of the larger.
    """

    small: int
    large: int
    least: Cost
    most: Cost

    def at(self, batch: float) -> Cost:
        """The cost of a batch on a chip; the all-reduces are of gradients, whatever the batch."""
        part = (batch - self.small) / (self.large - self.small)

        def between(low: float, high: float) -> float:
            return max(low + part * (high - low), min(low, high) * min(1.0, batch / self.small))

        flops = between(self.least.flops, self.most.flops)
        return Cost(
            flops,
            {"float32": flops},
            between(self.least.accessed, self.most.accessed),
            self.least.all_reduces,
            self.least.reduced,
            between(self.least.memory, self.most.memory),
            input_seconds=between(self.least.input_seconds, self.most.input_seconds),
        )
