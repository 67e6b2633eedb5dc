"""First-party architectures, registered through this package's entry point like any plugin's."""

from __future__ import annotations

import ganlab
from ganlab_builtin.architectures.ali import ALI
from ganlab_builtin.architectures.biggan import BigGAN
from ganlab_builtin.architectures.biggan_deep import BigGANDeep
from ganlab_builtin.architectures.cyclegan import CycleGAN
from ganlab_builtin.architectures.data_plus_noise import DataPlusNoise
from ganlab_builtin.architectures.dcgan import DCGAN
from ganlab_builtin.architectures.fixed_samples import FixedSamples
from ganlab_builtin.architectures.growing import Growing
from ganlab_builtin.architectures.infogan import InfoGAN
from ganlab_builtin.architectures.latents import Latents
from ganlab_builtin.architectures.lip_convnet import LipConvNet
from ganlab_builtin.architectures.mlp import MLP
from ganlab_builtin.architectures.packed import Packed
from ganlab_builtin.architectures.r3gan import R3GAN
from ganlab_builtin.architectures.resnet import ResNet
from ganlab_builtin.architectures.sndcgan import SNDCGAN
from ganlab_builtin.architectures.text_resnet import TextResNet
from ganlab_builtin.architectures.unet import UNet
from ganlab_builtin.architectures.unit_pixels import UnitPixels
from ganlab_builtin.architectures.with_head import WithHead
from ganlab_builtin.architectures.with_side import WithSide

GANLAB_KNOWN_AS = {
    "architectures.resnet": ["sngan", "resnet_cifar"],
    "architectures.dcgan": ["cnn", "conv", "convnet"],
    "architectures.packed": ["pacgan"],
    "architectures.mlp": ["dense", "fc", "fully_connected"],
}


@ganlab.hookimpl
def ganlab_architectures() -> dict[str, type]:
    """The architectures of this package."""
    return {
        "ali": ALI,
        "biggan": BigGAN,
        "biggan_deep": BigGANDeep,
        "cyclegan": CycleGAN,
        "data_plus_noise": DataPlusNoise,
        "dcgan": DCGAN,
        "fixed_samples": FixedSamples,
        "growing": Growing,
        "infogan": InfoGAN,
        "latents": Latents,
        "lip_convnet": LipConvNet,
        "mlp": MLP,
        "packed": Packed,
        "r3gan": R3GAN,
        "resnet": ResNet,
        "sndcgan": SNDCGAN,
        "text_resnet": TextResNet,
        "unet": UNet,
        "unit_pixels": UnitPixels,
        "with_head": WithHead,
        "with_side": WithSide,
    }
