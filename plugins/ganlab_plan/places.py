"""Names of hardware: a TPU slice, a number of GPUs, this machine's CPU."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ganlab_verify import tpu

from ganlab.errors import ConfigError, nearest
from ganlab_plan.chips import GPUS, TPUS, Chip

CPU = "cpu"
_MOST_GPUS = 4096


@dataclass(frozen=True)
class Place:
    """Hardware to train on.

    Attributes:
        name: As it is written: `v5e:8x8`, `h100:8`, `cpu`.
        chip: The kind of its chips.
        sides: The number of chips along each side of the slice; of GPUs, their number.
        replicas_of_chip: Replicas on each chip: two on a TPU v2 or v3, whose cores are separate.
    """

    name: str
    chip: Chip
    sides: tuple[int, ...]
    replicas_of_chip: int = 1

    @property
    def chips(self) -> int:
        """The number of chips."""
        return math.prod(self.sides)

    @property
    def replicas(self) -> int:
        """The number of replicas; meaningless for `cpu`, where the experiment's strategy decides."""
        return self.chips * self.replicas_of_chip

    @property
    def across(self) -> int:
        """Links between the two chips that are furthest from each other; of GPUs, one through the switch."""
        if not self.chip.wraps:
            return int(self.chips > 1)
        return sum(side // 2 if closed else side - 1 for side, closed in zip(self.sides, self._closed, strict=True))

    @property
    def memory(self) -> float:
        """Bytes of memory of a replica."""
        return self.chip.memory / self.replicas_of_chip

    @property
    def links(self) -> float:
        """Bytes per second that leave a chip in an all-reduce.

        Of GPUs, through the network if there are several hosts. Of a slice, from a chip at its corner, which has the
        fewest links: two along a side that is closed to a ring, one along another, none along a side of one chip. The
        cores of a single chip count as chips with all links.
        """
        if not self.chip.wraps:
            return self.chip.network if self.chip.network and self.chips > self.chip.hosted else self.chip.links
        wired = sum(2 if closed else int(side > 1) for side, closed in zip(self.sides, self._closed, strict=True))
        return self.chip.links * (wired / (2 * len(self.sides)) or 1.0)

    @property
    def _closed(self) -> tuple[bool, ...]:
        """Whether each side is closed to a ring: on a grid of three dimensions all are, or none."""
        closed = tuple(side % self.chip.wraps == 0 for side in self.sides)
        return closed if len(closed) < 3 or all(closed) else (False,) * len(closed)


def place(name: str) -> Place:
    """Reads the name of a place.

    Args:
        name: A TPU slice, `v5e:8x8` or `v4:4x4x4`; GPUs, `h100` or `h100:8`; or `cpu`.

    Raises:
        ConfigError: The name is unknown or its shape is invalid; the message has the known names.
    """
    kind, colon, shape = name.partition(":")
    if kind in TPUS:
        tpu.chips.topology(name)  # raises if the shape is invalid
        sides = tuple(int(side) for side in shape.split("x"))
        return Place(name, TPUS[kind], sides, tpu.chips.CHIPS[kind].cores)
    if kind in GPUS:
        if (colon and not re.fullmatch(r"[1-9]\d{0,3}", shape)) or int(shape or 1) > _MOST_GPUS:
            raise ConfigError(
                f"Invalid number in the topology {name!r}: after the colon comes the number of GPUs, from 1 to "
                f"{_MOST_GPUS}. Write for example '{kind}:8'."
            )
        return Place(name, GPUS[kind], (int(shape or 1),))
    if name == CPU:
        return Place(CPU, Chip(CPU, "cpu"), (1,))
    known = [*TPUS, *GPUS, CPU]
    raise ConfigError(
        f"Unknown topology {name!r}.{nearest(kind, known)} Known: slices of the TPUs {', '.join(TPUS)}, for example "
        f"v5e:8x8 or v4:4x4x4; the GPUs {', '.join(GPUS)}, for example h100:8; and {CPU}."
    )


def places(names: Iterable[str]) -> list[Place]:
    """Reads several names, each once.

    Raises:
        ConfigError: There are none, or one is unknown.
    """
    known = [place(name) for name in dict.fromkeys(name.strip() for name in names) if name]
    if not known:
        raise ConfigError("No topology. Name at least one, for example v5e:2x2, h100:8 or cpu.")
    return known
