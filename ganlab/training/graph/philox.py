"""Philox4x32-10 of integer operations, for programs that XLA compiles whole.

XLA has a Philox of its own, whose numbers differ from those of TensorFlow's kernels. This one has the kernels' numbers:
uniform ones bit for bit, normal ones but for the rounding of logarithm, sine and cosine.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

BLOCK = 4  # numbers to a counter value

# Salmon et al. (2011), table 2; and the fixed key with which TensorFlow turns seeds into a key and a counter.
_MULTIPLIERS, _WEYL, _SCRAMBLE = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), (0x3EC8F720, 0x02461E29)
_ROUNDS = 10
_LOW, _HALF = np.uint64(2**32 - 1), np.uint64(32)

_local = threading.local()  # each replica is traced in its own thread


@contextlib.contextmanager
def composing(on: bool, seed: tf.Tensor | None = None) -> Iterator[None]:
    """Context manager: where `on`, draws inside are traced into a program that XLA compiles.

    Args:
        on: Whether they are.
        seed: The seed of all of them, outside of every graph, as an input of the program: so that one program serves
            every seed.
    """
    before = composes(), seed_of_program()
    _local.on, _local.seed = on, seed
    try:
        yield
    finally:
        _local.on, _local.seed = before


def composes() -> bool:
    """Whether draws are traced into a program that XLA compiles."""
    return getattr(_local, "on", False)


def seed_of_program() -> tf.Tensor | None:
    """The seed that the program has as an input, int64; None for none."""
    return getattr(_local, "seed", None)


def composed(kind: str, count: int, seed: tuple[tf.Tensor, tf.Tensor], offset: tf.Tensor) -> tf.Tensor:
    """The numbers of TensorFlow's stateless generator.

    Args:
        kind: "uniform", in [0, 1), or "normal", standard normal by Box and Muller.
        count: How many.
        seed: Two integer scalars.
        offset: How many values of the counter to skip, each of which gives four numbers.

    Returns:
        `(count,)` float32.
    """
    words = [word for part in seed for word in _words(tf.cast(part, tf.uint64))]
    mixed = _rounds(words, [_word(word) for word in _SCRAMBLE])
    blocks = -(-count // BLOCK)
    counter = tf.cast(offset, tf.int64) + tf.range(blocks, dtype=tf.int64)
    words = _rounds([*_words(tf.cast(counter, tf.uint64)), *(tf.fill([blocks], word) for word in mixed[2:])], mixed[:2])
    numbers = [_unit(word) for word in words]
    if kind == "normal":
        radii = [tf.sqrt(-2.0 * tf.math.log(tf.maximum(u, 1e-7))) for u in numbers[::2]]
        angles = [np.float32(2 * np.pi) * u for u in numbers[1::2]]
        numbers = [f(a) * r for r, a in zip(radii, angles, strict=True) for f in (tf.sin, tf.cos)]
    return tf.reshape(tf.stack(numbers, 1), [-1])[:count]


def _rounds(counter: list[tf.Tensor], key: list[tf.Tensor]) -> list[tf.Tensor]:
    xor = tf.bitwise.bitwise_xor
    for _ in range(_ROUNDS):
        products = [
            tf.cast(word, tf.uint64) * tf.constant(factor, tf.uint64)
            for word, factor in zip(counter[::2], _MULTIPLIERS, strict=True)
        ]
        (low0, high0), (low1, high1) = (_words(product) for product in products)
        counter = [xor(xor(high1, counter[1]), key[0]), low1, xor(xor(high0, counter[3]), key[1]), low0]
        key = [word + _word(weyl) for word, weyl in zip(key, _WEYL, strict=True)]
    return counter


def _words(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The low and the high 32 bits of uint64; by shifts, which XLA fuses, and not by tf.bitcast, which it does not."""
    return tf.cast(tf.bitwise.bitwise_and(x, _LOW), tf.uint32), tf.cast(tf.bitwise.right_shift(x, _HALF), tf.uint32)


def _word(value: int) -> tf.Tensor:
    return tf.constant(value, tf.uint32)


def _unit(words: tf.Tensor) -> tf.Tensor:
    """Floats in [0, 1) of the 23 low bits."""
    mantissa = tf.bitwise.bitwise_and(words, _word(2**23 - 1))
    return tf.bitcast(tf.bitwise.bitwise_or(mantissa, _word(127 << 23)), tf.float32) - 1.0
