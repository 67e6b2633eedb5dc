"""The data sheets of chips, and the slices that they come in."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """A generation of TPUs; per chip, units per second.

    Attributes:
        flops: Floating-point operations in bfloat16.
        memory: Bytes to and from high-bandwidth memory.
        links: Bytes that leave over all its links to other chips together: half of the bidirectional figure.
        hosted: Chips to a host, in slices of several hosts.
        wraps: The length of a side from which on it is closed to a ring.
    """

    flops: float
    memory: float
    links: float
    hosted: int
    wraps: int


# https://cloud.google.com/tpu/docs/v5e and /v5p: peak compute per chip, HBM bandwidth, interchip bandwidth. A v5e slice
# is a torus only as a whole, 16x16; a v5p slice has wrap-around links if its sides are multiples of 4.
CHIPS = {
    "v5e": Chip(197e12, 819e9, 200e9, 4, 16),
    "v5p": Chip(459e12, 2765e9, 600e9, 4, 4),
}


@dataclass(frozen=True)
class Slice:
    """Chips in a grid.

    Attributes:
        name: Google Cloud's name: a v5p is counted in TensorCores, of which a chip has two.
        chip: The kind of chip.
        sides: The number of chips along each side.
    """

    name: str
    chip: str
    sides: tuple[int, ...]

    @property
    def chips(self) -> int:
        """The number of chips, each a replica."""
        return math.prod(self.sides)

    @property
    def across(self) -> int:
        """Links between the two chips that are furthest from each other."""
        wraps = CHIPS[self.chip].wraps
        return sum(side // 2 if side >= wraps and side % wraps == 0 else side - 1 for side in self.sides)


SLICES = (
    Slice("v5e-4", "v5e", (2, 2)),
    Slice("v5e-16", "v5e", (4, 4)),
    Slice("v5e-64", "v5e", (8, 8)),
    Slice("v5e-256", "v5e", (16, 16)),
    Slice("v5p-8", "v5p", (2, 2, 1)),
    Slice("v5p-64", "v5p", (2, 4, 4)),
    Slice("v5p-256", "v5p", (4, 4, 8)),
    Slice("v5p-1024", "v5p", (8, 8, 8)),
)
