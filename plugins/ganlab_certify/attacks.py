"""Bounds of a critic's Lipschitz constant from below: steep pairs of points, by gradient ascent, and steep tiles."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import numpy as np

from ganlab.lazy import tensorflow as tf

_RATES = (0.3, 0.1, 0.03, 0.01)
# Tiles at once, how often they have children, and how often all begins anew.
_TILES, _GENERATIONS, _ROUNDS = 320, 40, 4


def attacked_constant(
    critic: Callable[[tf.Tensor], tf.Tensor],
    starts: np.ndarray,
    *,
    seed: int = 0,
    steps: int = 100,
    seconds: float = 30.0,
) -> float:
    """The steepest slope of a critic that gradient ascent finds: its Lipschitz constant is at least this.

    Every start is one end of a pair; the other end lies at a random distance, or at another start. Both ends move so
    that `|critic(x) - critic(y)| / |x - y|` grows, in ever smaller parts of their distance, and the gradients' norms at
    both ends count too. A quarter of the pairs start around zero instead, at scales from a thousandth of the starts'
    spread to ten times it: biases begin at zero, and kinks of little trained critics lie there.

    Args:
        critic: The function, `(n, ...) -> (n,)`. It is traced once for the same shape again and again: variables that
            it reads may have other values by then.
        starts: Points to start from, `(n, ...)`, for example examples and samples.
        seed: Of the other ends.
        steps: Updates of each pair.
        seconds: When to stop.

    Returns:
        The slope.
    """
    random = np.random.default_rng(seed)
    shape = starts.shape
    x = starts.astype(np.float32)  # a copy
    spread, central = float(x.std()) or 1.0, slice(3, None, 4)
    around = spread * 10.0 ** random.uniform(-3, 1, size=(len(x[central]), *[1] * (len(shape) - 1)))
    x[central] = around * random.standard_normal(x[central].shape)
    scale = spread * 10.0 ** random.uniform(-2, 1, size=(shape[0], *[1] * (len(shape) - 1)))
    near = x + scale * random.standard_normal(shape)
    far = x[random.permutation(shape[0])]
    same = (x == far).reshape(shape[0], -1).all(axis=1)
    chosen = np.reshape((random.random(shape[0]) < 0.5) | same, scale.shape)
    y = np.where(chosen, near, far).astype(np.float32)
    step = _traced(critic, shape)
    best, end = 0.0, time.monotonic() + seconds
    first, second = tf.constant(x), tf.constant(y)
    for i in range(steps + 1):
        rate = _RATES[min(i * len(_RATES) // (steps + 1), len(_RATES) - 1)]
        first, second, steepest = step(first, second, tf.constant(rate, tf.float32))
        best = max(best, float(steepest))
        if time.monotonic() > end:
            break
    return best


@functools.lru_cache(maxsize=1)
def _traced(critic: Callable[[tf.Tensor], tf.Tensor], shape: tuple[int, ...]) -> Callable[..., tuple[tf.Tensor, ...]]:
    points = tf.TensorSpec(shape, tf.float32)
    step = tf.function(_step, autograph=False)
    return step.get_concrete_function(critic, points, points, tf.TensorSpec([], tf.float32))


def _step(
    critic: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor, y: tf.Tensor, rate: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Both ends moved by a part of their distance, and the steepest slope before."""
    with tf.GradientTape() as tape:
        tape.watch((x, y))
        rise = critic(x) - critic(y)
    at_x, at_y = tape.gradient(rise, (x, y), unconnected_gradients="zero")
    sign = tf.where(rise < 0, -1.0, 1.0)
    towards = [_rows(gradient) * sign[:, None] for gradient in (at_x, at_y)]
    between = _rows(x) - _rows(y)
    distance = tf.norm(between, axis=1)
    slope = tf.math.divide_no_nan(tf.abs(rise), distance)
    norms = [tf.norm(gradient, axis=1) for gradient in towards]
    # Float32: what is left of a rise between points that nearly meet, or of a large score, is rounding.
    exact = distance > 1e-3 * (1.0 + tf.norm(_rows(x), axis=1))
    steepest = [tf.reduce_max(each) for each in (*norms, tf.where(exact, slope, 0.0))]
    direction = tf.math.divide_no_nan(between, distance[:, None])
    ends = []
    for end, gradient, way in ((x, towards[0], 1.0), (y, towards[1], -1.0)):
        ascent = gradient - way * slope[:, None] * direction
        length = tf.norm(ascent, axis=1, keepdims=True)
        moved = rate * distance[:, None] * tf.math.divide_no_nan(ascent, length)
        ends.append(end + tf.reshape(moved, tf.shape(end)))
    return ends[0], ends[1], tf.reduce_max(tf.stack(steepest))


def tiled_constant(
    critic: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    starts: np.ndarray,
    classes: int = 1,
    *,
    seed: int = 0,
    seconds: float = 30.0,
) -> float:
    """The steepest slope of a critic of images that an evolution of small tiles finds, each repeated over an image.

    There activations have the same signs in every tile, and what the tiles add to a score's gradient adds up.

    Args:
        critic: The function of images and of their classes, `(n, height, width, channels), (n,) -> (n,)`.
        starts: Images, for their sides, their spread, and how many are scored at once.
        classes: How many there are.
        seed: Of the tiles.
        seconds: When to stop.

    Returns:
        The slope; 0 if no tile suits the sides.
    """
    random, end, best = np.random.default_rng(seed), time.monotonic() + seconds, 0.0
    count, (height, width, channels), spread = min(len(starts), _TILES), starts.shape[1:], float(starts.std()) or 1.0

    @functools.partial(tf.function, autograph=False)
    def norms(x: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        x = tf.tile(x, [1, height // x.shape[1], width // x.shape[2], 1])
        with tf.GradientTape() as tape:
            tape.watch(x)
            scores = critic(x, labels)
        return tf.norm(_rows(tape.gradient(scores, x, unconnected_gradients="zero")), axis=1)

    sides = [side for side in (2, 4, 8) if not (height % side or width % side)]
    for side in sides * _ROUNDS:
        shape, each = (count, side, side, channels), (count, 1, 1, 1)
        tiles = random.standard_normal(shape) + random.standard_normal((count, 1, 1, channels))
        tiles, labels = tiles * spread * 10.0 ** random.uniform(-0.5, 0.5, each), np.arange(count) % classes
        found = norms(tiles.astype(np.float32), labels).numpy()
        for _ in range(_GENERATIONS):
            parents = random.choice(np.argsort(-found)[: -(-count // 8)], count)
            size = np.abs(tiles[parents]).mean(axis=(1, 2, 3), keepdims=True) * 10.0 ** random.uniform(-2.0, 0.3, each)
            changed = random.random(shape) < random.choice([1.0, 0.5, 2 / (side * side * channels)], each)
            children = tiles[parents] + size * changed * random.standard_normal(shape)
            others = np.where(random.random(count) < 0.1, random.integers(classes, size=count), labels[parents])
            found = np.concatenate([found, norms(children.astype(np.float32), others).numpy()])
            kept = np.argsort(-found)[:count]
            tiles, labels = np.concatenate([tiles, children])[kept], np.concatenate([labels, others])[kept]
            found = found[kept]
            best = max(best, float(found[0]))
            if time.monotonic() > end:
                return best
    return best


def _rows(x: tf.Tensor) -> tf.Tensor:
    return tf.reshape(x, [x.shape[0], -1])
