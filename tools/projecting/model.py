"""The cost of an iteration on a chip, and its time on a slice of them."""

from __future__ import annotations

from dataclasses import dataclass

from projecting.chips import CHIPS, Slice

# XLA multiplies float32 numbers at the highest precision as six products of bfloat16.
PASSES = {"float32": 6, "mixed_bfloat16": 1}
# Seconds for a message from one chip to the next: an assumption, of the order that is reported for such links.
HOP = 1e-6


@dataclass(frozen=True)
class Cost:
    """The cost of one iteration on one chip.

    Attributes:
        flops: Floating-point operations.
        accessed: Bytes read and written.
        all_reduces: The number of all-reduces.
        reduced: Bytes in all of them.
        examples: Bytes of real examples from its host.
    """

    flops: float
    accessed: float
    all_reduces: int
    reduced: float
    examples: float


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

    def at(self, batch: int) -> Cost:
        """The cost of a batch on a chip; the all-reduces are of gradients, whatever the batch."""
        part = (batch - self.small) / (self.large - self.small)

        def between(low: float, high: float) -> float:
            return max(low + part * (high - low), min(low, high) * min(1.0, batch / self.small))

        return Cost(
            between(self.least.flops, self.most.flops),
            between(self.least.accessed, self.most.accessed),
            self.least.all_reduces,
            self.least.reduced,
            between(self.least.examples, self.most.examples),
        )


@dataclass(frozen=True)
class Time:
    """Seconds of one iteration's parts.

    Attributes:
        products: Arithmetic, at the chip's peak times an efficiency.
        memory: Reading and writing.
        exchange: The bytes of all-reduces.
        latency: Their way through the slice.
        input: The real examples, from the host's memory to the chips.
    """

    products: float
    memory: float
    exchange: float
    latency: float
    input: float

    @property
    def computing(self) -> float:
        """Arithmetic and memory, which overlap."""
        return max(self.products, self.memory)

    @property
    def reducing(self) -> float:
        """All-reduces, which overlap with nothing: each needs a gradient, and the next update needs its result."""
        return self.exchange + self.latency

    @property
    def total(self) -> float:
        """The time of the iteration, which overlaps with the next one's input."""
        return max(self.computing + self.reducing, self.input)

    @property
    def limit(self) -> str:
        """The part that takes longest, in a word."""
        parts = {
            "products": self.products,
            "memory": self.memory,
            "all-reduce bytes": self.exchange,
            "all-reduce latency": self.latency,
            "input": self.input,
        }
        if self.input >= self.computing + self.reducing:
            return "input"
        return max(parts, key=lambda name: parts[name] if name != "input" else 0.0)


def time(cost: Cost, where: Slice, *, precision: str, efficiency: float, host: float) -> Time:
    """The shortest time of an iteration.

    An all-reduce on a torus that uses every link both ways sends and receives `2 (n - 1) / n` times its bytes on each
    chip, through all links at once, and passes the slice twice, to add up and to distribute the sum.

    Args:
        cost: The cost on one chip.
        where: The slice.
        precision: The precision of the experiment.
        efficiency: The fraction of the peak that products reach.
        host: Bytes of examples per second that a host makes for its chips.
    """
    chip, n = CHIPS[where.chip], where.chips
    hosted = min(n, chip.hosted)
    return Time(
        cost.flops * PASSES[precision] / (chip.flops * efficiency),
        cost.accessed / chip.memory,
        2 * (n - 1) / n * cost.reduced / chip.links,
        2 * where.across * HOP * cost.all_reduces,
        cost.examples * hosted / host,
    )
