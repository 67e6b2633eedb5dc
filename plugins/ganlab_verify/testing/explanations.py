"""Explains why training on replicas differs from training on one device."""

from __future__ import annotations

from ganlab_verify.lab import Training

_NEAR = 1e-3


def explained(one: Training, other: Training, departure: str) -> str:
    """Explains a difference between a training on replicas and one on one device.

    Args:
        one: The training on one device.
        other: The training on several replicas.
        departure: The first difference.
    """
    count = other.trainer.experiment.replicas
    seen = f"On {count} replicas {departure}."
    state = [name for name in other.unequal() if name.startswith("constraints/")]
    if state:
        return (
            f"{seen} The state {[name.rpartition('/')[2] for name in state]} differs between replicas: in advance, "
            "reduce statistics of the data with replica.mean, replica.sum or replica.max."
        )
    tag = "critic/penalty"
    if tag in one.reduced():
        here, there = float(one.reduced()[tag][0]), float(other.reduced()[tag][0])
        for factor, how in (
            (count, "divided by the number of examples on the replica, or multiplied by replica.count"),
            (1 / count, "multiplied by the number of examples on the replica, or divided by replica.count"),
        ):
            if here and abs(there / here / factor - 1) < _NEAR:
                has_state = any(name.startswith("constraints/") and "/state/" in name for name in one.values)
                hint = " Or advance takes replica.sum of a state where replica.mean is meant." if has_state else ""
                return (
                    f"{seen} The penalty is {factor:g} times what it is on one device: it is {how}. Return each "
                    "example's own value, neither averaged nor scaled: the core divides by the global batch size."
                    f"{hint}"
                )
    return (
        f"{seen} Something is taken from the replica's own part of the batch, or drawn on each replica alone: a mean, "
        "a norm or a maximum over examples in penalty or transform (each row may depend only on its own example; "
        "reduce statistics in advance with replica.mean, .sum or .max), or random numbers that do not come from "
        "replica."
    )
