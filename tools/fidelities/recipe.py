"""Weights and inputs that both programs make for themselves, from names and shapes, by numpy in float64.

Names, shapes and the order of axes are those of the reference, torch-mimicry, BigGAN-PyTorch or R3GAN:
`block2.c1.weight` (outputs, inputs, height, width), images (n, channels, height, width).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

BATCH = 4


@dataclass(frozen=True)
class Case:
    """A published network.

    Attributes:
        kind: "sngan", "wgan_gp", "biggan", "biggan_deep" or "r3gan".
        side: The images' side in pixels.
        name: The name of its experiment file in gin/published.
        settings: The arguments of the architecture that make networks of the reduced width that numbers are taken at.
        latent: The length of the latent vector.
        all_classes: How many classes the dataset has; None without labels.
        step: The step whose scheduled values are taken.
    """

    kind: str
    side: int
    name: str
    settings: Mapping[str, int]
    latent: int = 128
    all_classes: int | None = None
    step: int = 0

    @property
    def classes(self) -> int | None:
        """How many classes the networks of reduced width distinguish."""
        return 3 if self.all_classes else None


def _mimicry(kind: str, side: int) -> Case:
    settings = {"generator_channels": 6, "critic_channels": 4} if side == 32 else {"channels": 4}
    return Case(kind, side, f"mimicry_{kind}_{side}", settings)


_CASES = (
    *(_mimicry(kind, side) for kind in ("sngan", "wgan_gp") for side in (32, 48, 64, 128)),
    Case("biggan", 128, "biggan_imagenet128_256x8", {"channels": 8}, 120, 1000),
    Case("biggan_deep", 128, "biggan_deep_imagenet128", {"channels": 8}, 128, 1000),
    Case("r3gan", 32, "r3gan_cifar10", {"channels": 32}, 64, 10, step=39062),
)
CASES = {case.name: case for case in _CASES}
LABELS = np.array([2, 0, 1, 2])


def weight(network: str, name: str, shape: Sequence[int]) -> np.ndarray:
    """A parameter of a network, "generator" or "critic"; of the variance of He et al. (2015) if it is a kernel."""
    normal = _normal(f"{network}/{name}", shape)
    if len(shape) > 1:
        return normal * np.sqrt(2.0 / np.prod(shape[1:]))
    gain = name.split(".")[-2].startswith("b") and name.endswith("weight")
    # Biases above zero, because a few channels of rectifiers would die on the way, and every gradient with them.
    return np.asarray((1.0 if gain else 0.3) + 0.1 * normal)


def inputs(case: Case) -> dict[str, np.ndarray]:
    """Latent vectors, images for both sides of the critic's loss, and the weights of the gradient penalty's points."""
    images = (BATCH, 3, case.side, case.side)
    return {
        "latent": _normal("latent", (BATCH, case.latent)),
        "real": np.tanh(_normal("real", images)),
        "fake": np.tanh(_normal("fake", images)),
        "between": np.array([0.1, 0.35, 0.6, 0.85]),
    }


def singular_vector(weight: np.ndarray) -> np.ndarray:
    """The leading left singular vector of a kernel as the matrix (outputs, everything else).

    A power iteration leaves it where it is, so it does not matter how many of them a program takes, or when.
    """
    return np.linalg.svd(weight.reshape(len(weight), -1), full_matrices=False)[0][:, 0]


def summary(name: str, array: np.ndarray) -> list[float]:
    """The norm of an array and its product with a random one, which any moved or changed number changes."""
    array = np.asarray(array, np.float64)
    along = _normal(f"along/{name}", array.shape)
    return [float(np.linalg.norm(array)), float(np.sum(array * along))]


def _normal(name: str, shape: Sequence[int]) -> np.ndarray:
    return np.asarray(np.random.default_rng(zlib.crc32(name.encode())).standard_normal(tuple(shape)))
