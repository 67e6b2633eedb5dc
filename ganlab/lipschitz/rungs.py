"""Certificates as a ladder: each rung bounds a critic's Lipschitz constant from above, the later ones more tightly."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ganlab.errors import ConfigError, nearest
from ganlab.lazy import keras
from ganlab.lipschitz.averaged import averaged_bound
from ganlab.lipschitz.boxes import within
from ganlab.lipschitz.certificates import certificate
from ganlab.lipschitz.chains import Chain, chain_of
from ganlab.lipschitz.constants import Unknown
from ganlab.lipschitz.patterns import exact_constant
from ganlab.lipschitz.semidefinite import semidefinite_bound
from ganlab.lipschitz.splitting import split_bound

if TYPE_CHECKING:
    import tensorflow as tf

RUNGS = ("products", "averaged", "semidefinite", "box", "exact")
# Where a search over all pieces has a chance to end, and where a box can be split along all its sides.
_SMALL, _FEW = 64, 6


@dataclass(frozen=True)
class Rung:
    """One certificate.

    Attributes:
        name: Its name in `RUNGS`.
        bound: The critic's Lipschitz constant is at most this; None if the rung does not suit the critic.
        seconds: How long it took.
        note: The reason for None, or what the bound holds for.
    """

    name: str
    bound: float | None
    seconds: float
    note: str = ""


def ladder(
    critic: keras.Model,
    weights: Mapping[str, tf.Tensor],
    *,
    seconds: float = 60.0,
    box: tuple[np.ndarray, np.ndarray] | None = None,
    rungs: tuple[str, ...] = RUNGS,
) -> list[Rung]:
    """Upper bounds of a critic's Lipschitz constant in the Euclidean norm, from the cheapest to the tightest.

    - `products`: norms of layers multiplied along branches (`ganlab.lipschitz.certificate`); suits most critics.
    - `averaged`: products across activations as far as these are averages (Combettes and Pesquet, 2020).
    - `semidefinite`: LipSDP (Fazlyab et al., 2019), one multiplier for each unit.
    - `box`: for points of a box: the same with the slopes that activations have there, or, of rectifiers and up to six
      inputs, from ever smaller parts of the box.
    - `exact`: the steepest of all linear pieces of a critic with rectifiers, by branch and bound.

    All but the first suit critics without branches, of dense layers, or of convolutions small enough to be written out
    as matrices.

    Args:
        critic: A built model.
        weights: Its effective weights, by the names of `ganlab.functional.named_weights`.
        seconds: How long each of the last three rungs may take; what they have by then is sound.
        box: The least and the largest value of each input number, in the critic's shape, for `box`.
        rungs: Which to climb.

    Returns:
        The rungs, in this order.

    Raises:
        ConfigError: A rung is unknown.
    """
    for name in rungs:
        if name not in RUNGS:
            raise ConfigError(f"There is no certificate {name!r}.{nearest(name, RUNGS)} There are: {', '.join(RUNGS)}.")
    chain: Chain | None = None
    reason = ""
    if set(rungs) - {"products"}:
        try:
            chain = chain_of(critic, weights)
        except Unknown as unknown:
            reason = f"The critic is not a chain of matrices and activations: {unknown}."

    def products() -> tuple[float | None, str]:
        certified = certificate(critic)
        return certified(weights), certified.missing or ""

    def semidefinite(of: Chain) -> float:
        return min(averaged_bound(of), semidefinite_bound(of, seconds=seconds))

    def local(of: Chain) -> tuple[float | None, str]:
        if box is None:
            return None, "No box is given."
        low, high = (np.asarray(end, np.float64).ravel() for end in box)
        narrow, note = within(of, low, high), "between points of the box"
        if of.inputs > _FEW or any(stage.kink is None for stage in of.stages):
            return semidefinite(narrow), note
        return min(averaged_bound(narrow), split_bound(of, low, high, seconds=seconds)[1]), note

    def exact(of: Chain) -> tuple[float | None, str]:
        units = sum(len(stage.bias) for stage in of.stages)
        if units > _SMALL:
            return None, f"It has {units} units, too many to search all signs of; at most {_SMALL}."
        try:
            exact = exact_constant(of, seconds=seconds)
        except Unknown as unknown:
            return None, f"The critic has no linear pieces: {unknown}."
        done = exact.lower == exact.upper
        return exact.upper, "" if done else f"not finished; at least {exact.lower:.4g}"

    tightened: dict[str, Callable[[Chain], Any]] = {
        "averaged": lambda of: (averaged_bound(of), ""),
        "semidefinite": lambda of: (semidefinite(of), ""),
        "box": local,
        "exact": exact,
    }
    climbed = []
    for name in rungs:
        began = time.monotonic()
        if name == "products":
            bound, note = products()
        elif chain is None:
            bound, note = None, reason
        else:
            bound, note = tightened[name](chain)
        climbed.append(Rung(name, bound, time.monotonic() - began, note))
    return climbed
