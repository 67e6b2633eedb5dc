"""The reference: the networks of BigGAN-PyTorch from a folder with its source, and PyTorch's Adam, in float64."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np

from fidelities.recipe import LABELS, Case, inputs, singular_vector, weight
from fidelities.torch_updates import update

COMMIT = "98459431a5d618d644d54cd1e9fceb1e5045648d"
# scripts/launch_BigGAN_bs256x8.sh and scripts/launch_BigGAN_deep.sh
_COMMON = {"resolution": 128, "adam_eps": 1e-6, "SN_eps": 1e-6}
_GENERATOR = {"hier": True, "G_shared": True, "shared_dim": 128, "G_attn": "64", "BN_eps": 1e-5}
_WIDTHS = {"biggan": 96, "biggan_deep": 128}
_ADAM = {"betas": (0.0, 0.999), "eps": 1e-6}


def numbers(case: Case, source: Path) -> dict[str, np.ndarray]:
    """Outputs, losses, gradients and updates by name, from the recipe's weights and inputs."""
    import torch

    torch.set_default_dtype(torch.float64)
    generator, critic = _networks(source, case, case.settings["channels"], case.classes)
    for network, role in ((generator, "generator"), (critic, "critic")):
        _fill(network, role)
    given = {name: torch.from_numpy(array) for name, array in inputs(case).items()}
    labels = torch.from_numpy(LABELS)
    losses = sys.modules["losses"]
    found: dict[str, Any] = {}

    found["samples"] = generator(given["latent"], generator.shared(labels))
    found["generator_loss"] = losses.generator_loss(critic(found["samples"], labels))
    found |= update("generator", generator, found["generator_loss"], lr=1e-4, **_ADAM)

    found["real_scores"], found["fake_scores"] = critic(given["real"], labels), critic(given["fake"], labels)
    real, fake = losses.discriminator_loss(found["fake_scores"], found["real_scores"])
    found["critic_loss"] = real + fake
    found |= update("critic", critic, found["critic_loss"], lr=4e-4, **_ADAM)
    return {name: np.array(value.detach()) for name, value in found.items()}


def parameters(case: Case, source: Path) -> dict[str, int]:
    """How many parameters the networks of the published width have."""
    generator, critic = _networks(source, case, _WIDTHS[case.kind], case.all_classes)
    count = {"generator": generator, "critic": critic}
    return {role: sum(p.numel() for p in network.parameters()) for role, network in count.items()}


def version() -> str:
    """The names and versions of the reference."""
    import torch

    return f"BigGAN-PyTorch {COMMIT[:7]}, PyTorch {torch.__version__.partition('+')[0]}"


def _networks(source: Path, case: Case, width: int, classes: int | None) -> tuple[Any, Any]:
    if str(source) not in sys.path:
        sys.path.insert(0, str(source))
    import losses  # noqa: F401  # for numbers()

    networks = importlib.import_module({"biggan": "BigGAN", "biggan_deep": "BigGANdeep"}[case.kind])

    with contextlib.redirect_stdout(io.StringIO()):
        generator = networks.Generator(G_ch=width, dim_z=case.latent, n_classes=classes, **_COMMON, **_GENERATOR)
        critic = networks.Discriminator(D_ch=width, n_classes=classes, D_attn="64", **_COMMON)
    return generator, critic


def _fill(network: Any, role: str) -> None:
    import torch

    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(weight(role, name, parameter.shape)))
        for module in network.modules():
            if hasattr(module, "u0"):
                kernel = module.weight.numpy().reshape(len(module.weight), -1)
                module.u0.copy_(torch.from_numpy(singular_vector(kernel))[None])
