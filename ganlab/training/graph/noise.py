"""Numbers that are a pure function of (seed, step, stream, example), drawn a replica's slice at a time.

Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) is a counter-based generator: four numbers
for each value of its counter. A replica that starts its counter where its rows begin draws exactly its own rows of the
draw that one device would make for the global batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import tensorflow as tf

from ganlab.training.graph import philox

Kind = Literal["uniform", "normal"]

PHILOX = 1
_BLOCK = philox.BLOCK
_STREAM_BITS, _DRAW_BITS = 8, 12

# Streams separate draws by purpose. Each constraint takes two, for its advance and its penalty; each augmentation
# four, for real and generated examples of a critic update and of a generator update.
FAKE_LATENT, FAKE_LAYERS, CRITIC_LAYERS, LATENT, LAYERS, CRITIC_LOSS, GENERATOR_LOSS, LABELS = range(8)
CONSTRAINTS, GENERATOR_CONSTRAINTS, AUGMENTATIONS, _STREAMS = 8, 128, 192, 2**_STREAM_BITS
# The most components of each.
MOST = {
    "constraints": (GENERATOR_CONSTRAINTS - CONSTRAINTS) // 2,
    "generator_constraints": (AUGMENTATIONS - GENERATOR_CONSTRAINTS) // 2,
    "augmentations": (_STREAMS - AUGMENTATIONS) // 4,
}


@dataclass(frozen=True)
class Draw:
    """One draw, as recorded when a function is first traced: enough to make it again elsewhere."""

    kind: Kind
    shape: tuple[int, ...]
    stream: int
    number: int


def draw(spec: Draw, *, seed: int, step: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
    """Some rows of a draw for the global batch.

    Args:
        spec: Kind, shape `(rows, ...)`, stream, and the draw's number within the stream.
        seed: The experiment's seed.
        step: The update's number, an integer scalar.
        first: The place of the first row in the global batch, a multiple of `rows`, an integer scalar.

    Returns:
        float32 of `spec.shape`.
    """
    count = math.prod(spec.shape)
    label = tf.cast(step, tf.int64) * 2 ** (_STREAM_BITS + _DRAW_BITS) + (spec.stream * 2**_DRAW_BITS + spec.number)
    start = tf.cast(first, tf.int64) * math.prod(spec.shape[1:])
    aligned = count % _BLOCK == 0
    # Rows that do not begin at a block of the counter: draw one block more and cut.
    total = count if aligned else -(-count // _BLOCK) * _BLOCK + _BLOCK
    given = philox.seed_of_program()
    key = tf.constant(seed, tf.int64) if given is None else given
    flat = _philox(spec.kind, total, (key, label), start // _BLOCK)
    if not aligned:
        flat = tf.slice(flat, [start % _BLOCK], [count])
    return tf.reshape(flat, spec.shape)


def latents(n: tf.Tensor, length: int, seed: tf.Tensor, kind: Kind = "normal", number: int = 0) -> tf.Tensor:
    """The numbers of `whole` for latent vectors, `(n, length)`; n and the seed may be integer scalar tensors."""
    count = tf.cast(n, tf.int64) * length
    total = -(-count // _BLOCK) * _BLOCK
    label = tf.constant(LATENT * 2**_DRAW_BITS + number, tf.int64)
    flat = _philox(kind, total, (tf.cast(seed, tf.int64), label), tf.constant(0, tf.int64))
    return tf.reshape(flat[:count], tf.stack([tf.cast(n, tf.int64), length]))


def _philox(kind: Kind, count: int | tf.Tensor, seed: tuple[tf.Tensor, tf.Tensor], offset: tf.Tensor) -> tf.Tensor:
    if philox.composes() and isinstance(count, int):
        return philox.composed(kind, count, seed, offset)
    state = tf.raw_ops.StatelessRandomGetKeyCounter(seed=tf.stack(seed))
    counter = tf.stack([state.counter[0] + tf.cast(offset, tf.uint64), state.counter[1]])
    # Drawn flat: under XLA the numbers depend on the shape, not on the size alone.
    op = tf.raw_ops.StatelessRandomNormalV2 if kind == "normal" else tf.raw_ops.StatelessRandomUniformV2
    shape = tf.constant([count], tf.int32) if isinstance(count, int) else tf.reshape(count, [1])
    return op(shape=shape, key=state.key, counter=counter, alg=PHILOX, dtype=tf.float32)


def whole(
    kind: Kind, shape: Sequence[int], *, seed: int, stream: int, step: int = 0, number: int = 0, start: int = 0
) -> tf.Tensor:
    """A draw without replicas, made whole on one device: its rows from number `start` on."""
    lead = start % _BLOCK  # rows from a block of the counter on, of which the first are cut
    spec = Draw(kind, (int(shape[0]) + lead, *(int(n) for n in shape[1:])), stream, number)
    return draw(spec, seed=seed, step=tf.constant(step, tf.int64), first=tf.constant(start - lead, tf.int64))[lead:]
