"""Certificates as a ladder: each rung bounds a critic's Lipschitz constant from above, the later ones more tightly."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ganlab.errors import ConfigError, nearest
from ganlab.lazy import keras
from ganlab.lipschitz import certificate
from ganlab_certify.averaged import averaged_bound
from ganlab_certify.boxes import within
from ganlab_certify.chains import Chain, UnsuitableError
from ganlab_certify.keras_chains import chain_of
from ganlab_certify.patterns import exact_constant
from ganlab_certify.semidefinite import semidefinite_bound
from ganlab_certify.splitting import split_bound

if TYPE_CHECKING:
    import tensorflow as tf

    Box = tuple[np.ndarray, np.ndarray]
    Found = tuple[float | None, str]  # a bound, and its note

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
    box: Box | None = None,
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
    chain: Chain | str = ""
    if set(rungs) - {"products"}:
        try:
            chain = chain_of(critic, weights)
        except UnsuitableError as reason:
            chain = f"The critic is not a chain of matrices and activations: {reason}."

    def products() -> Found:
        certified = certificate(critic)
        return certified(weights), certified.missing or ""

    return [_timed(name, products if name == "products" else _of_chain(name, chain, seconds, box)) for name in rungs]


def _timed(name: str, compute: Callable[[], Found]) -> Rung:
    began = time.monotonic()
    bound, note = compute()
    return Rung(name, bound, time.monotonic() - began, note)


def _of_chain(name: str, chain: Chain | str, seconds: float, box: Box | None) -> Callable[[], Found]:
    """Computes a rung of a network that is a chain; of another one, `chain` is the reason why it is not."""
    if isinstance(chain, str):
        return lambda: (None, chain)
    compute = {
        "averaged": lambda: (averaged_bound(chain), ""),
        "semidefinite": lambda: (_semidefinite(chain, seconds), ""),
        "box": lambda: _within(chain, box, seconds),
        "exact": lambda: _exact(chain, seconds),
    }
    return compute[name]


def _semidefinite(chain: Chain, seconds: float) -> float:
    return min(averaged_bound(chain), semidefinite_bound(chain, seconds=seconds))


def _within(chain: Chain, box: Box | None, seconds: float) -> Found:
    if box is None:
        return None, "No box is given."
    low, high = (np.asarray(end, np.float64).ravel() for end in box)
    narrow, note = within(chain, low, high), "between points of the box"
    if chain.inputs > _FEW or not chain.of_rectifiers:
        return _semidefinite(narrow, seconds), note
    return min(averaged_bound(narrow), split_bound(chain, low, high, seconds=seconds)[1]), note


def _exact(chain: Chain, seconds: float) -> Found:
    units = sum(len(stage.bias) for stage in chain.stages)
    if units > _SMALL:
        return None, f"It has {units} units, too many to search all signs of; at most {_SMALL}."
    try:
        lower, upper = exact_constant(chain, seconds=seconds)
    except UnsuitableError as reason:
        return None, f"The critic has no linear pieces: {reason}."
    return upper, "" if lower == upper else f"not finished; at least {lower:.4g}"
