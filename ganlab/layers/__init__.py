"""Layers for critics that are right under replicas and under penalties on gradients, where Keras' own are not.

Noise that belongs to examples (`Dropout`, `GaussianNoise`), activations that sort (`GroupSort`, `FullSort`), and
normalizations and resizings that can be differentiated twice (`LayerNormalization`, `GroupNormalization`,
`InstanceNormalization`, `UpSampling2D`, `Resizing`). `ganlab.lipschitz.certificate` knows the constants of all of them.
"""

from ganlab.layers.noise import Dropout, GaussianNoise, NoiseSource, noise_from, noisy_layers
from ganlab.layers.normalizations import GroupNormalization, InstanceNormalization, LayerNormalization
from ganlab.layers.resizing import Resizing, UpSampling2D
from ganlab.layers.sorting import FullSort, GroupSort

__all__ = [
    "Dropout",
    "FullSort",
    "GaussianNoise",
    "GroupNormalization",
    "GroupSort",
    "InstanceNormalization",
    "LayerNormalization",
    "NoiseSource",
    "Resizing",
    "UpSampling2D",
    "noise_from",
    "noisy_layers",
]
