"""Bidirectional spectral normalization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import ganlab
from ganlab import lipschitz
from ganlab.bounds import Ge, Gt, Le
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import Certified

# As under spectral_norm.
_WARM_UP = 100


class BidirectionalSpectralNorm(Certified):
    """Divides every kernel by the mean of the largest singular values of two matrices that it can be reshaped to.

    Lin, Sekar and Fanti, "Why spectral normalization stabilizes GANs: analysis and improvements" (2021), section 5:
    `2 scale W / (sigma(W_1) + sigma(W_2))`, where W_1 is the matrix (everything else, outputs) of spectral_norm and W_2
    the matrix (everything else, inputs). So both a layer's outputs and the gradients that it passes back keep their
    size. The two are one for dense layers, and differ for convolutions with unequal numbers of channels, on which
    spectral_norm alone lets gradients vanish. The paper's second change is `scale`, for which it tries several.

    Each matrix has a vector as state that follows its leading singular vector by power iteration, and carries no
    gradient, as under spectral_norm.
    """

    def __init__(
        self, *, scale: Annotated[float, Gt(0)] = 1.0, power_iterations: Annotated[int, Ge(1), Le(10_000)] = 1
    ) -> None:
        """Chooses the scale, and how closely singular vectors are followed.

        Args:
            scale: The factor of every kernel, the mean of its two norms.
            power_iterations: Power iterations per critic update.
        """
        self.scale, self.power_iterations = scale, power_iterations

    def initial_state(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """A unit vector for every matrix, near its leading singular vector."""
        return {
            name: lipschitz.spectral_norm(lipschitz.ReshapedMatrix.of(matrix), matrix, iterations=_WARM_UP)[1]
            for name, matrix in _matrices(weights).items()
        }

    def advance(
        self,
        weights: Mapping[str, tf.Tensor],
        state: Mapping[str, tf.Tensor],
        batch: ganlab.Batch,
        replica: ganlab.Replica,
    ) -> dict[str, tf.Tensor]:
        """The vectors, `power_iterations` further."""
        return {
            name: lipschitz.spectral_norm(
                lipschitz.ReshapedMatrix.of(matrix), matrix, state[name], iterations=self.power_iterations
            )[1]
            for name, matrix in _matrices(weights).items()
        }

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every kernel over the mean of its estimated norms, times the scale."""
        normalized = dict(weights)
        sigmas = {
            name: lipschitz.spectral_norm(lipschitz.ReshapedMatrix.of(matrix), matrix, state[name])[0]
            for name, matrix in _matrices(weights).items()
        }
        for name in _kernels(weights):
            one = sigmas[f"{name}/outputs"]
            mean = (one + sigmas.get(f"{name}/inputs", one)) / 2
            normalized[name] = weights[name] * (self.scale / tf.maximum(mean, 1e-12))
        return normalized


def _kernels(weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    return {name: weight for name, weight in weights.items() if len(weight.shape) >= 2}


def _matrices(weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """The matrices of every kernel, `(everything else, outputs)` and `(everything else, inputs)`.

    A dense kernel has one alone: the other is its transpose, of the same norm.
    """
    matrices = {}
    for name, kernel in _kernels(weights).items():
        *taps, inputs, outputs = range(len(kernel.shape))
        matrices[f"{name}/outputs"] = tf.reshape(kernel, [-1, kernel.shape[-1]])
        if not taps:
            continue
        matrices[f"{name}/inputs"] = tf.reshape(tf.transpose(kernel, [*taps, outputs, inputs]), [-1, kernel.shape[-2]])
    return matrices
