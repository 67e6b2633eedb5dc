"""Names of TPU topologies, and the memory of each chip's cores."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ganlab.errors import ConfigError, nearest

GIB = 2**30


@dataclass(frozen=True)
class Chip:
    """A generation of TPUs.

    Attributes:
        name: Its name in topologies.
        dimensions: The dimensions of the grid that connects its chips.
        most: Chips of the largest slice.
        cores: Cores of a chip, as programs see them.
        memory: Bytes of high-bandwidth memory of such a core.
        configuration: libtpu's name for this view of the chip, or None for its default.
    """

    name: str
    dimensions: int
    most: int
    cores: int
    memory: int
    configuration: str | None = None


# The largest slice is a pod of 256 chips (v2, v5e, v6e), 1024 (v3) or 4096 (v4), and 6144 chips of a pod of v5p. The
# memory of a chip is 16 GiB (v2), 32 (v3), 32 (v4), 16 (v5e), 95 (v5p) and 32 (v6e), according to the page of each
# generation, https://cloud.google.com/tpu/docs/v2 and so on. The compiler reserves a little: it refused programs beyond
# 7.48, 15.48, 30.75, 15.75, 95.73 and 31.24 GiB for a core. v2 and v3 have two cores with half of a chip's memory each.
# The two cores of v4 and of v5p share theirs and are programmed as one ("megacore"), on v4 only where requested.
CHIPS = {
    chip.name: chip
    for chip in (
        Chip("v2", 2, 256, 2, 8 * GIB),
        Chip("v3", 2, 1024, 2, 16 * GIB),
        Chip("v4", 3, 4096, 1, 32 * GIB, "megacore"),
        Chip("v5e", 2, 256, 1, 16 * GIB),
        Chip("v5p", 3, 6144, 1, 95 * GIB),
        Chip("v6e", 2, 256, 1, 32 * GIB),
    )
}


@dataclass(frozen=True)
class Topology:
    """A slice of a TPU.

    Attributes:
        name: As it is written, `v5e:2x2`.
        chip: The kind of its chips.
        chips: How many chips it has.
    """

    name: str
    chip: Chip
    chips: int

    @property
    def cores(self) -> int:
        """The number of replicas that it trains."""
        return self.chips * self.chip.cores


def topology(name: str) -> Topology:
    """Reads a topology's name.

    Args:
        name: The chip and the number of chips along each side of the slice, for example `v5e:2x2` or `v4:2x2x1`.

    Raises:
        ConfigError: The chip is unknown, the shape is invalid for this chip, or no slice is so large.
    """
    kind, _, shape = str(name).partition(":")
    if kind not in CHIPS:
        known = ", ".join(CHIPS)
        raise ConfigError(f"Unknown TPU {kind!r} in the topology {name!r}.{nearest(kind, CHIPS)} Known: {known}.")
    chip = CHIPS[kind]
    sides = [int(side) for side in shape.split("x")] if re.fullmatch(r"[1-9]\d{0,3}(x[1-9]\d{0,3})*", shape) else []
    if len(sides) != chip.dimensions:
        example = ":".join((kind, "2x2" if chip.dimensions == 2 else "2x2x1"))
        raise ConfigError(
            f"Invalid shape in the topology {name!r}: a {kind} slice takes {chip.dimensions} whole numbers of at "
            f"least 1 with an x between. Write for example {example!r}."
        )
    chips = math.prod(sides)
    if chips > chip.most:
        raise ConfigError(
            f"The topology {name!r} has {chips} chips, and the largest slice of {kind} has {chip.most}. Name a smaller "
            "one."
        )
    return Topology(name, chip, chips)
