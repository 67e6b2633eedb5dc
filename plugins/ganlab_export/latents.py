"""Operations on latent vectors before a generator sees them: truncation and spherical interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# With a smaller limit nearly all of a thousand draws are beyond it, and the generator's mean would serve better.
SMALLEST_TRUNCATION = 0.01

# The number of draws in a stream of random numbers, without the first.
_ROUNDS = 4095


def truncated(latents: Array, redraw: Callable[[int], Array], limit: float) -> Array:
    """Draws again what lies beyond a limit, until nothing does: a normal distribution cut off at both ends.

    The truncation trick of Brock, Donahue and Simonyan, "Large scale GAN training for high fidelity natural image
    synthesis" (2019), section 3.1, entry by entry: less variety, and more of what the generator does well.

    Args:
        latents: Standard normal, `(n, latent_dim)`. Entries within the limit stay as they are.
        redraw: Returns the first, second, ... further draw of the same shape. Its row i must not depend on n.
        limit: The largest absolute value that stays, at least 0.01.

    Returns:
        float32 of the same shape.
    """
    vectors = np.array(latents, np.float32)
    for number in range(1, _ROUNDS + 1):
        beyond = np.abs(vectors) > limit
        if not beyond.any():
            return vectors
        vectors[beyond] = redraw(number)[beyond]
    # At the smallest limit an entry comes here once in 10^14.
    return vectors.clip(-limit, limit)


def spherical(starts: Array, ends: Array, steps: int) -> Array:
    """Goes from one latent vector to another along the great circle through both.

    White, "Sampling generative networks" (2016), section 2.1:
    `sin((1 - t) w) / sin(w) start + sin(t w) / sin(w) end` for t from 0 to 1, with w the angle between the two. In many
    dimensions normal vectors lie near a sphere, which a straight line leaves for norms that the generator never saw.

    Args:
        starts: `(rows, latent_dim)`.
        ends: Likewise.
        steps: The number of vectors in a row, both ends included; at least 2.

    Returns:
        `(rows, steps, latent_dim)` float32; a straight line where the directions are the same, opposite or none.
    """
    a, b = (np.asarray(end, np.float64)[:, None, :] for end in (starts, ends))
    t = np.linspace(0.0, 1.0, steps)[None, :, None]
    norms = np.linalg.norm(a, axis=-1, keepdims=True) * np.linalg.norm(b, axis=-1, keepdims=True)
    cosine = (a * b).sum(axis=-1, keepdims=True) / np.maximum(norms, np.finfo(np.float64).tiny)
    angle = np.arccos(cosine.clip(-1.0, 1.0))
    sine = np.sin(angle)
    straight = (sine < 1e-6) | (norms == 0)
    safe = np.where(straight, 1.0, sine)
    from_a = np.where(straight, 1.0 - t, np.sin((1.0 - t) * angle) / safe)
    from_b = np.where(straight, t, np.sin(t * angle) / safe)
    return (from_a * a + from_b * b).astype(np.float32)
