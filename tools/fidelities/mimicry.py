"""The reference: torch-mimicry's own networks, losses and gradients, and PyTorch's Adam, in float64."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from importlib import metadata
from typing import Any

import numpy as np

from fidelities.recipe import BATCH, Case, inputs, singular_vector, weight
from fidelities.torch_updates import plain, update

# The reduced widths of the generator and the critic, `ngf` and `ndf`.
_WIDTHS = {32: (6, 4), 48: (32, 64), 64: (64, 64), 128: (64, 64)}
LEARNING_RATE, BETAS, EPSILON = 2e-4, (0.0, 0.9), 1e-8


def installed() -> bool:
    """Whether PyTorch and torch-mimicry are."""
    return all(importlib.util.find_spec(name) for name in ("torch", "torch_mimicry"))


def version() -> str:
    """The names and versions of the reference."""
    return f"torch-mimicry {metadata.version('torch-mimicry')}, PyTorch {metadata.version('torch')}"


def numbers(case: Case) -> dict[str, np.ndarray]:
    """Outputs, losses, gradients and updates by name, from the recipe's weights and inputs."""
    import torch

    torch.set_default_dtype(torch.float64)
    generator, critic = _networks(case, *_WIDTHS[case.side])
    given = {name: torch.from_numpy(array) for name, array in inputs(case).items()}
    critic.eval()  # its spectral normalization then leaves its vectors where they are
    found: dict[str, Any] = {}

    found["samples"] = generator(given["latent"])
    loss = generator.compute_gan_loss(critic(found["samples"]))
    found["generator_loss"] = loss
    found |= update("generator", generator, loss, lr=LEARNING_RATE, betas=BETAS, eps=EPSILON)

    found["real_scores"], found["fake_scores"] = critic(given["real"]), critic(given["fake"])
    loss = critic.compute_gan_loss(output_real=found["real_scores"], output_fake=found["fake_scores"])
    found["critic_loss"] = loss
    if case.kind == "wgan_gp":
        found["penalty"] = _penalty(critic, given)
        loss = loss + found["penalty"]
    found |= update("critic", critic, loss, lr=LEARNING_RATE, betas=BETAS, eps=EPSILON)
    return {name: np.array(value.detach()) for name, value in found.items()}


def parameters(case: Case) -> dict[str, int]:
    """How many parameters the networks of the published width have."""
    generator, critic = _networks(case)
    return {"generator": generator.count_params()[1], "critic": critic.count_params()[1]}


def _networks(case: Case, *widths: int) -> tuple[Any, Any]:
    """The networks, with the recipe's weights if widths are given."""
    # The package imports its logging and metrics, which need more packages than the networks do.
    if "torch_mimicry" not in sys.modules:
        spec = importlib.util.find_spec("torch_mimicry")
        package = types.ModuleType("torch_mimicry")
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["torch_mimicry"] = package
    module = importlib.import_module(f"torch_mimicry.nets.{case.kind}.{case.kind}_{case.side}")
    name = {"sngan": "SNGAN", "wgan_gp": "WGANGP"}[case.kind]
    sizes: list[dict[str, int]] = [{"ngf": widths[0]}, {"ndf": widths[1]}] if widths else [{}, {}]
    networks = [
        getattr(module, f"{name}{part}{case.side}")(**size)
        for part, size in zip(("Generator", "Discriminator"), sizes, strict=True)
    ]
    if widths:
        for network, role in zip(networks, ("generator", "critic"), strict=True):
            _fill(network, role)
    return networks[0], networks[1]


def _fill(network: Any, role: str) -> None:
    import torch

    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(weight(role, plain(name), parameter.shape)))
        for module in network.modules():
            if hasattr(module, "weight_u"):  # PyTorch's own spectral normalization, which the program uses
                kernel = module.weight_orig.numpy().reshape(len(module.weight_orig), -1)
                left = singular_vector(kernel)
                right = left @ kernel
                module.weight_u.copy_(torch.from_numpy(left))
                module.weight_v.copy_(torch.from_numpy(right / np.linalg.norm(right)))


def _penalty(critic: Any, given: dict[str, Any]) -> Any:
    """The program's gradient penalty at the recipe's points, for which its random numbers are replaced."""
    import torch

    random, torch.rand = torch.rand, lambda *shape: given["between"].reshape(BATCH, 1)
    try:
        return critic.compute_gradient_penalty_loss(
            real_images=given["real"], fake_images=given["fake"], gp_scale=critic.gp_scale
        )
    finally:
        torch.rand = random
