"""Gradients and updates of a network in PyTorch."""

from __future__ import annotations

from typing import Any


def plain(name: str) -> str:
    """A parameter's name without the mark of spectral normalization."""
    return name.removesuffix("_orig")


def update(role: str, network: Any, loss: Any, **settings: Any) -> dict[str, Any]:
    """The gradient of each parameter, and its change by Adam's update with it and one with minus half of it.

    Args:
        role: "generator" or "critic", the prefix of the names.
        network: The network.
        loss: What is differentiated; None if the parameters have their gradients.
        settings: Adam's.
    """
    import torch

    before = {name: value.detach().clone() for name, value in network.named_parameters()}
    if loss is not None:
        network.zero_grad()
        loss.backward()
    gradients = {f"{role}_gradient/{plain(name)}": value.grad.clone() for name, value in network.named_parameters()}
    optimizer = torch.optim.Adam(network.parameters(), **settings)
    optimizer.step()
    for parameter in network.parameters():
        parameter.grad.mul_(-0.5)
    optimizer.step()
    return gradients | {
        f"{role}_update/{plain(name)}": value.detach() - before[name] for name, value in network.named_parameters()
    }
