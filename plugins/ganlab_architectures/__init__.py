"""First-party architectures, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab
from ganlab_architectures.data_plus_noise import DataPlusNoise
from ganlab_architectures.dcgan import DCGAN
from ganlab_architectures.mlp import MLP
from ganlab_architectures.resnet import ResNet


@ganlab.hookimpl
def ganlab_architectures() -> dict[str, type]:
    """The architectures of this package."""
    return {"data_plus_noise": DataPlusNoise, "dcgan": DCGAN, "mlp": MLP, "resnet": ResNet}
