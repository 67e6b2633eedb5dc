"""Certificates as a ladder: each rung bounds a critic's Lipschitz constant from above, the later ones more tightly."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ganlab.errors import ConfigError, nearest
from ganlab.lazy import keras, require
from ganlab.lipschitz import certificate
from ganlab_certify.averaged import averaged_bound
from ganlab_certify.blocks import blockwise_bounds
from ganlab_certify.boxes import within
from ganlab_certify.chains import Chain, UnsuitableError
from ganlab_certify.keras_networks import network_of
from ganlab_certify.networks import Network
from ganlab_certify.patterns import exact_constant
from ganlab_certify.semidefinite import semidefinite_bound
from ganlab_certify.splitting import split_bound, split_everywhere
from ganlab_certify.waves import frequency_bounds

if TYPE_CHECKING:
    import tensorflow as tf

    Box = tuple[np.ndarray, np.ndarray]
    Found = tuple[float | None, str, float]  # a bound, its note, and a slope that was found
    # A network as a chain for each label, itself, or the reason why there is none.
    Taken = list[Chain] | Network | str

RUNGS = ("products", "averaged", "semidefinite", "box", "exact")
# Where a search over all pieces has a chance to end, and where a box can be split along all its sides.
_SMALL, _FEW = 64, 6
# The most inputs for which space is split before signs are searched, and the relative error of a finished search.
_FEWEST, _CLOSE = 4, 1e-6


@dataclass(frozen=True)
class Rung:
    """One certificate.

    Attributes:
        name: Its name in `RUNGS`.
        bound: The critic's Lipschitz constant is at most this; None if the rung does not suit the critic.
        seconds: How long it took.
        note: The reason for None, or what the bound holds for.
        by_label: The bound for each label, where these were bounded apart; `bound` is the largest.
        lower: The steepest slope that it found on its way: the constant is at least this.
    """

    name: str
    bound: float | None
    seconds: float
    note: str = ""
    by_label: tuple[float, ...] = ()
    lower: float = 0.0


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
    - `exact`: the steepest of all linear pieces of a critic with rectifiers, up to a millionth: of at most six inputs
      from ever smaller parts of all space, of at most 64 units by branch and bound over their signs.

    The first suits most critics. The others suit those whose layers are linear, or activations with known slopes,
    branches included; all but `semidefinite` those whose matrices are small enough to be written out. Of larger ones,
    `semidefinite` takes multipliers that all cells of an image share, first of a torus, frequency by frequency, then
    with the borders, by sparse matrices.

    Of a critic that takes labels a bound holds for each, and is the largest of theirs.

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
    network: Taken = ""
    if set(rungs) - {"products"}:
        try:
            network = network_of(critic, weights)
            network = network.chains()
        except UnsuitableError as reason:
            if isinstance(network, str):
                network = f"The critic is not made of matrices and activations: {reason}."

    def products() -> list[Found]:
        certified = certificate(critic)
        return [(certified(weights), certified.missing or "", 0.0)]

    climbed, least = list[Rung](), math.inf
    for name in rungs:
        rung = _timed(name, products if name == "products" else _of_network(name, network, seconds, box))
        if rung.bound is not None and name != "products":  # that one is of float32, and may be rounded down
            bound, by_label = min(rung.bound, least), tuple(min(each, least) for each in rung.by_label)
            rung, least = replace(rung, bound=bound, by_label=by_label), least if name == "box" else bound
        climbed.append(rung)
    return climbed


def _timed(name: str, compute: Callable[[], list[Found]]) -> Rung:
    began = time.monotonic()
    # Threads of numpy's linear algebra wait for each other busily: with something else on a core, seconds are minutes.
    with require("threadpoolctl").threadpool_limits(max(1, (os.cpu_count() or 1) // 2), user_api="blas"):
        found = compute()
    bounds = [bound for bound, *_ in found if bound is not None]
    note, lower = next((note for _, note, _ in found if note), ""), max(lower for *_, lower in found)
    if len(bounds) < len(found):
        return Rung(name, None, time.monotonic() - began, note)
    return Rung(name, max(bounds), time.monotonic() - began, note, tuple(bounds) if len(bounds) > 1 else (), lower)


def _of_network(name: str, network: Taken, seconds: float, box: Box | None) -> Callable[[], list[Found]]:
    """Computes a rung for each label."""
    if isinstance(network, str):
        return lambda: [(None, network, 0.0)]
    if isinstance(network, Network):
        if name == "semidefinite":
            return lambda: [(bound, "", 0.0) for bound in _of_large(network, seconds)]
        return lambda: [(None, "The critic's matrices are too large to write out.", 0.0)]
    each = seconds / len(network)
    compute: dict[str, Callable[[Chain], Found]] = {
        "averaged": lambda chain: (averaged_bound(chain), "", 0.0),
        "semidefinite": lambda chain: (_semidefinite(chain, each), "", 0.0),
        "box": lambda chain: _within(chain, box, each),
        "exact": lambda chain: _exact(chain, each),
    }
    return lambda: [compute[name](chain) for chain in network]


def _of_large(network: Network, seconds: float) -> list[float]:
    try:
        start, bounds = frequency_bounds(network, seconds=seconds * 0.4)
    except UnsuitableError:
        return blockwise_bounds(network, seconds=seconds)
    with contextlib.suppress(UnsuitableError):
        bounds = list(map(min, bounds, blockwise_bounds(network, seconds=seconds * 0.6, start=start)))
    return bounds


def _semidefinite(chain: Chain, seconds: float) -> float:
    return min(averaged_bound(chain), semidefinite_bound(chain, seconds=seconds))


def _within(chain: Chain, box: Box | None, seconds: float) -> Found:
    if box is None:
        return None, "No box is given.", 0.0
    low, high = (np.asarray(end, np.float64).ravel() for end in box)
    narrow, note = within(chain, low, high), "between points of the box"
    if chain.inputs > _FEW or not chain.of_rectifiers:
        return _semidefinite(narrow, seconds), note, 0.0
    lower, upper = split_bound(chain, low, high, seconds=seconds)
    return min(averaged_bound(narrow), upper), note, lower


def _exact(chain: Chain, seconds: float) -> Found:
    units = sum(int((stage.radius > 0).sum()) for stage in chain.stages)
    searches: list[Callable[..., tuple[float, float]]] = []
    if chain.inputs <= _FEW and chain.of_rectifiers:
        searches.append(functools.partial(split_everywhere, tolerance=_CLOSE))
    if units <= _SMALL:
        searches.insert(len(searches) if chain.inputs <= _FEWEST else 0, exact_constant)
    if not searches:
        return None, f"It has {units} units, too many to search all signs of; at most {_SMALL}.", 0.0
    end, lower, upper = time.monotonic() + seconds, 0.0, averaged_bound(chain)
    for left, search in zip(range(len(searches), 0, -1), searches, strict=True):
        try:
            found, bound = search(chain, seconds=(end - time.monotonic()) / left)
        except UnsuitableError as reason:
            return None, f"The critic has no linear pieces: {reason}.", 0.0
        lower, upper = max(lower, found), min(upper, bound)
        if upper <= lower * (1 + 2 * _CLOSE):
            return max(lower, upper), "", lower
    return upper, "not finished", lower
