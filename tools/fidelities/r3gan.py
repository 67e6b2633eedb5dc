"""The reference: the networks and losses of R3GAN from a folder with its source, and PyTorch's Adam, in float64."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import packaging.version

from fidelities.recipe import LABELS, Case, inputs, weight
from fidelities.torch_updates import update

COMMIT = "19a7ddf463fbac2bd39b4c1c73d63f1c441c7403"
# train.py, the preset CIFAR10 with --cond=1, at the end of its schedules
_WIDTH, _GROUP, _STAGES, _BLOCKS, _LATENT = 768, 16, 4, 2, 64
_GAMMA = 0.005
_ADAM = {"lr": 5e-5, "betas": (0.0, 0.99), "eps": 1e-8}


def numbers(case: Case, source: Path) -> dict[str, np.ndarray]:
    """Outputs, losses, gradients and updates by name, from the recipe's weights and inputs."""
    import torch

    torch.set_default_dtype(torch.float64)
    generator, critic = _networks(source, case.settings["channels"], case.classes)
    with torch.no_grad():
        for network, role in ((generator, "generator"), (critic, "critic")):
            for name, parameter in network.named_parameters():
                parameter.copy_(torch.from_numpy(weight(role, name, parameter.shape)))
    given = {name: torch.from_numpy(array) for name, array in inputs(case).items()}
    labels = torch.nn.functional.one_hot(torch.from_numpy(LABELS), case.classes).to(torch.float64)
    training = importlib.import_module("R3GAN.Trainer").AdversarialTraining(generator, critic)
    found: dict[str, Any] = {}

    # The program takes gradients itself; the losses that it takes them of are those it returns.
    found["samples"] = generator(given["latent"], labels)
    losses, _ = training.AccumulateGeneratorGradients(given["latent"], given["real"], labels)
    found["generator_loss"] = losses.mean()
    found |= update("generator", generator, None, **_ADAM)

    found["real_scores"] = critic(given["real"], labels)[:, None]
    found["fake_scores"] = critic(given["fake"], labels)[:, None]
    critic.zero_grad()
    training.Generator = lambda latent, labels: given["fake"]
    losses, _, *penalties = training.AccumulateDiscriminatorGradients(
        given["latent"], given["real"], labels, Gamma=_GAMMA
    )
    found["critic_loss"] = losses.mean()
    found["penalty"] = _GAMMA / 2 * sum(penalties).mean()
    found |= update("critic", critic, None, **_ADAM)
    return {name: np.array(value.detach()) for name, value in found.items()}


def parameters(case: Case, source: Path) -> dict[str, int]:
    """How many parameters the networks of the published width have."""
    networks = zip(("generator", "critic"), _networks(source, _WIDTH, case.all_classes), strict=True)
    return {role: sum(p.numel() for p in network.parameters()) for role, network in networks}


def version() -> str:
    """The names and versions of the reference."""
    import torch

    return f"R3GAN {COMMIT[:7]}, PyTorch {torch.__version__.partition('+')[0]}"


def _networks(source: Path, width: int, classes: int | None) -> tuple[Any, Any]:
    import torch

    if str(source) not in sys.path:
        sys.path.insert(0, str(source))
    if "pkg_resources" not in sys.modules:  # which setuptools had once, and of which this program needs one function
        sys.modules["pkg_resources"] = types.ModuleType("pkg_resources")
        sys.modules["pkg_resources"].parse_version = packaging.version.parse  # type: ignore[attr-defined]
    networks = importlib.import_module("R3GAN.Networks")
    shared = {
        "WidthPerStage": [width] * _STAGES,
        "CardinalityPerStage": [2 * width // _GROUP] * _STAGES,
        "BlocksPerStage": [_BLOCKS] * _STAGES,
        "ExpansionFactor": 2,
        "ConditionDimension": classes,
    }
    generator = networks.Generator(NoiseDimension=_LATENT, ConditionEmbeddingDimension=_LATENT, **shared)
    critic = networks.Discriminator(ConditionEmbeddingDimension=width, **shared)
    for network in (generator, critic):
        for stage in network.MainLayers:
            stage.DataType = torch.float64
        for module in network.modules():
            if hasattr(module, "Kernel"):  # of eighths, and the program insists on float32
                module.Kernel = module.Kernel.float()
    return generator, critic
