"""Residual networks of convolutions along a text."""

from __future__ import annotations

from typing import Annotated, Any

import ganlab
from ganlab.bounds import Ge, Le
from ganlab.lazy import keras
from ganlab_builtin.architectures.parts import to_score, unsupported


class TextResNet(ganlab.Architecture):
    """A generator of one-hot characters and their critic, for samples `(length, characters)`.

    The character model of Gulrajani et al., "Improved Training of Wasserstein GANs" (2017), appendix, as in the
    authors' code: residual blocks of two convolutions over five characters, `x + 0.3 conv(relu(conv(relu(x))))`, no
    normalization, and a softmax over characters at the generator's end. Theirs have 512 channels and five blocks.
    """

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 128,
        channels: Annotated[int, Ge(1)] = 64,
        blocks: Annotated[int, Ge(0), Le(1000)] = 2,
        kernel_size: Annotated[int, Ge(1)] = 5,
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input.
            channels: Numbers for each character within the networks.
            blocks: Residual blocks of each network.
            kernel_size: Characters that a convolution sees.
        """
        self.latent_dim, self.channels, self.blocks, self.kernel_size = latent_dim, channels, blocks, kernel_size

    def generator(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, latent_dim) -> (n, length, characters)`, probabilities, float32."""
        length, characters = _sizes(sample_shape)
        latent = keras.Input((self.latent_dim,), name="latent")
        x = keras.layers.Dense(length * self.channels, name="project")(latent)
        x = self._blocks(keras.layers.Reshape((length, self.channels), name="base")(x))
        x = keras.layers.Conv1D(characters, 1, name="characters")(x)
        return keras.Model(latent, keras.layers.Softmax(dtype="float32", name="sample")(x), name="generator")

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, length, characters) -> (n, 1)`, float32."""
        _sizes(sample_shape)
        sample = keras.Input(sample_shape, name="sample")
        x = self._blocks(keras.layers.Conv1D(self.channels, 1, name="characters")(sample))
        return keras.Model(sample, to_score(keras.layers.Flatten(name="flat")(x)), name="critic")

    def _blocks(self, x: Any) -> Any:
        for i in range(1, self.blocks + 1):
            y = x
            for j in (1, 2):
                y = keras.layers.ReLU(name=f"activation_{i}_{j}")(y)
                y = keras.layers.Conv1D(
                    self.channels,
                    self.kernel_size,
                    padding="same",
                    kernel_initializer="he_uniform",
                    name=f"convolution_{i}_{j}",
                )(y)
            y = keras.layers.Rescaling(0.3, name=f"scaled_{i}")(y)
            x = keras.layers.Add(name=f"sum_{i}")([x, y])
        return x


def _sizes(sample_shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(sample_shape) != 2 or min(sample_shape) < 1:
        raise unsupported("text_resnet", sample_shape, "texts (length, characters)")
    return sample_shape
