"""Layers that are right under replicas and under penalties on gradients, where Keras' own are not, and for labels.

Noise that belongs to examples (`Dropout`, `GaussianNoise`, and `noise` for layers of your own), activations that sort
(`GroupSort`, `FullSort`), and normalizations and resizings that can be differentiated twice (`LayerNormalization`,
`GroupNormalization`, `InstanceNormalization`, `UpSampling2D`, `Resizing`). `ganlab.lipschitz.certificate` knows the
constants of all of them.

For critics of Lipschitz constant one, whatever the weights, there are `AOLDense`, `AOLConv2D`, `SLLDense`, `SLLConv2D`,
`CPLDense`, `CPLConv2D`, `SkewConv2D`, `OrthogonalConv2D`, `SandwichDense`, `L2SelfAttention`, `HouseholderActivation`,
`LayerCentering`, `BatchLipNorm`, `LipschitzResidual`, `InvertibleDownsampling`, `L2NormPooling2D` and
`ScaledAveragePooling2D`.

For class labels there are `LabelEmbedding`, `ProjectionHead`, `ConditionalBatchNormalization` and
`ConditionalLayerNormalization`; `SelfAttention` is that of SAGAN, and has no Lipschitz constant.
"""

from ganlab.layers.almost_orthogonal import AOLConv2D, AOLDense
from ganlab.layers.attention import L2SelfAttention, SelfAttention
from ganlab.layers.centering import BatchLipNorm, LayerCentering
from ganlab.layers.conditional import ConditionalBatchNormalization, ConditionalLayerNormalization
from ganlab.layers.cpl import CPLConv2D, CPLDense
from ganlab.layers.labels import LabelEmbedding, ProjectionHead
from ganlab.layers.mixing import LipschitzResidual
from ganlab.layers.noisy import Dropout, GaussianNoise, NoiseSource, noise, noise_from, noisy_layers
from ganlab.layers.normalizations import GroupNormalization, InstanceNormalization, LayerNormalization
from ganlab.layers.orthogonal import OrthogonalConv2D, SkewConv2D
from ganlab.layers.pooling import InvertibleDownsampling, L2NormPooling2D, ScaledAveragePooling2D
from ganlab.layers.reflecting import HouseholderActivation
from ganlab.layers.resizing import Resizing, UpSampling2D
from ganlab.layers.sandwich import SandwichDense
from ganlab.layers.sll import SLLConv2D, SLLDense
from ganlab.layers.sorting import FullSort, GroupSort

__all__ = [
    "AOLConv2D",
    "AOLDense",
    "BatchLipNorm",
    "CPLConv2D",
    "CPLDense",
    "ConditionalBatchNormalization",
    "ConditionalLayerNormalization",
    "Dropout",
    "FullSort",
    "GaussianNoise",
    "GroupNormalization",
    "GroupSort",
    "HouseholderActivation",
    "InstanceNormalization",
    "InvertibleDownsampling",
    "L2NormPooling2D",
    "L2SelfAttention",
    "LabelEmbedding",
    "LayerCentering",
    "LayerNormalization",
    "LipschitzResidual",
    "NoiseSource",
    "OrthogonalConv2D",
    "ProjectionHead",
    "Resizing",
    "SLLConv2D",
    "SLLDense",
    "SandwichDense",
    "ScaledAveragePooling2D",
    "SelfAttention",
    "SkewConv2D",
    "UpSampling2D",
    "noise",
    "noise_from",
    "noisy_layers",
]
