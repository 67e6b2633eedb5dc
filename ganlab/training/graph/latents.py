"""The latent vectors of an architecture, made of random numbers."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.interfaces import Architecture
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph import noise
from ganlab.training.graph.networks import static_shape
from ganlab.training.graph.replica import Draws

# The numbers of latent vectors that are drawn at once: 2 GiB.
_MOST = 1 << 29


def latents_of_update(architecture: Architecture, draws: Draws, stream: int) -> tf.Tensor:
    """The latent vectors of an update's rows, `(local_batch, latent_dim)` float32."""
    shape = draws.local_batch, int(architecture.latent_dim)
    if not shape[1]:
        return tf.zeros(shape)
    return _made(architecture, lambda kind, number: draws.take(kind, shape, stream))


def latents_of_samples(architecture: Architecture, n: int | tf.Tensor, seed: int, start: int = 0) -> tf.Tensor:
    """Those of samples from number `start` on, `(n, latent_dim)` float32; in a graph n and seed may be tensors."""
    if not architecture.latent_dim:
        return tf.zeros(tf.stack([tf.cast(n, tf.int32), 0]))
    length, whole = int(architecture.latent_dim), {"seed": seed, "stream": noise.LATENT, "start": start}
    if tf.is_tensor(n):
        return _made(architecture, lambda kind, number: noise.latents(n, length, seed, kind, number))
    if n * length > _MOST:
        raise ContractError(
            f"{n} latent vectors of {length} numbers are more than {_MOST:,} numbers at once. Draw fewer samples."
        )
    return _made(architecture, lambda kind, number: noise.whole(kind, (n, length), number=number, **whole))


def is_normal(architecture: Architecture) -> bool:
    """Whether its latent vectors are the normal numbers themselves."""
    return getattr(architecture.latent, "__func__", None) is Architecture.latent


def _made(architecture: Architecture, draw: Callable[[noise.Kind, int], tf.Tensor]) -> tf.Tensor:
    normal, selector = draw("normal", 0), selector_of(architecture)
    if is_normal(architecture):
        return normal
    with plugin_code(selector, "latent"):
        latent = tf.convert_to_tensor(architecture.latent(draw("uniform", 1), normal))
    if static_shape(latent) != static_shape(normal) or latent.dtype != normal.dtype:
        raise ContractError(
            f"{selector}.latent returned the shape {static_shape(latent)}, {latent.dtype.name}; it must be that of its "
            f"arguments, {static_shape(normal)}, float32: a row of latent_dim numbers for each sample."
        )
    return latent
