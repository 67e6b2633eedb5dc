"""The cost of an iteration on one replica, and its time on a place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ganlab_plan.places import Place

Limit = Literal["compute", "memory bandwidth", "all-reduce", "kernel launches", "input", "memory capacity"]


@dataclass(frozen=True)
class Cost:
    """The cost of one iteration on one replica.

    Attributes:
        flops: Floating-point operations.
        products: Those of matrix products and convolutions by the dtype of the factors; with a TPU, all of `flops`.
        accessed: Bytes read and written.
        all_reduces: The number of all-reduces; for GPUs of messages, each with all gradients of an update.
        reduced: Bytes in all of them.
        memory: Bytes that are in use at once.
        kernels: The number of kernels that a GPU starts.
        input_seconds: Core-seconds that a host takes to make the replica's real examples.
    """

    flops: float
    products: Mapping[str, float]
    accessed: float
    all_reduces: int
    reduced: float
    memory: float
    kernels: int = 0
    input_seconds: float = 0.0


@dataclass(frozen=True)
class Time:
    """Seconds of one iteration's parts.

    Attributes:
        products: Arithmetic, at the chip's peak times a fraction.
        memory: Reading and writing.
        exchange: The bytes of all-reduces.
        latency: Their way through the slice.
        launches: Starting kernels.
        input: The real examples, made by the hosts.
        serial: Whether input and all else follow one another, as on a CPU, where `products` is all else; otherwise
            arithmetic overlaps with memory, and both with input.
    """

    products: float
    memory: float
    exchange: float = 0.0
    latency: float = 0.0
    launches: float = 0.0
    input: float = 0.0
    serial: bool = False

    @property
    def computing(self) -> float:
        """Arithmetic, memory and the starting of kernels."""
        if self.serial:
            return self.products + self.memory
        return max(self.products, self.memory, self.launches)

    @property
    def reducing(self) -> float:
        """All-reduces, which overlap with nothing: each needs a gradient, and the next update needs its result."""
        return self.exchange + self.latency

    @property
    def total(self) -> float:
        """The time of the iteration."""
        if self.serial:
            return self.computing + self.input
        return max(self.computing + self.reducing, self.input)

    @property
    def limit(self) -> Limit:
        """The part that takes longest."""
        if self.input >= self.computing + self.reducing:
            return "input"
        parts: dict[Limit, float] = {
            "compute": self.products,
            "memory bandwidth": self.memory,
            "all-reduce": self.reducing,
            "kernel launches": self.launches,
        }
        return max(parts, key=lambda name: parts[name])


def time(cost: Cost, where: Place, *, precision: str, fraction: float) -> Time:
    """The shortest time of an iteration.

    An all-reduce sends and receives `2 (n - 1) / n` times its bytes on each of n chips, at the rate of `Place.links`,
    and passes the slice twice, to add up and to distribute the sum. Replicas of one chip share its links.

    Args:
        cost: The cost on one replica.
        where: The place; not `cpu`.
        precision: The precision of the experiment.
        fraction: The fraction of the peak that products reach.
    """
    chip, n, share = where.chip, where.replicas, where.replicas_of_chip
    rates = {dtype: chip.rate(dtype, precision) / share for dtype in cost.products}
    hosted = min(n, chip.hosted * share)
    return Time(
        sum(flops / (rates[dtype] * fraction) for dtype, flops in cost.products.items()),
        cost.accessed * share / chip.bandwidth,
        2 * (n - 1) / n * cost.reduced * share / where.links,
        2 * where.across * chip.hop * cost.all_reduces,
        cost.kernels * chip.launch,
        cost.input_seconds * hosted / chip.cores,
    )
