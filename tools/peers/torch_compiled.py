"""WGAN-GP in PyTorch by `torch.compile`, a graph for each update; see torch_eager.py for the networks.

    python tools/peers/torch_compiled.py mlp

See serving.py for its options and answers. `torch.compile` cannot differentiate what it has compiled twice, so the
whole gradient is compiled: of a function of the weights, by `torch.func`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from torch.func import functional_call, grad, grad_and_value

from peers import serving
from peers.torch_eager import CRITIC_STEPS, Model, prepare, wait

Weights = dict[str, torch.Tensor]


def critic_loss(
    model: Model, weights: Weights, real: torch.Tensor, fake: torch.Tensor, mixing: torch.Tensor
) -> torch.Tensor:
    """The critic's loss, as that of torch_eager.py, as a function of its weights."""

    def scores(x: torch.Tensor) -> torch.Tensor:
        return functional_call(model.critic, weights, (x,))

    slope = grad(lambda points: scores(points).sum())(mixing * real + (1 - mixing) * fake)
    slopes = (slope.flatten(1).square().sum(1) + 1e-12).sqrt()
    return scores(fake).mean() - scores(real).mean() + model.weight * (slopes - 1).square().mean()


def generator_loss(model: Model, weights: Weights, latent: torch.Tensor) -> torch.Tensor:
    """The generator's loss as a function of its weights."""
    return -model.critic(functional_call(model.generator, weights, (latent,))).mean()


def trainer(asked: serving.Asked) -> serving.Train:
    """Trains the model for the requested iterations."""
    model, data, device = prepare(asked)
    critic, generator = (dict(network.named_parameters()) for network in (model.critic, model.generator))

    @torch.compile
    def critic_gradients() -> tuple[Weights, torch.Tensor]:
        real = data[torch.randint(0, len(data), (model.batch,), device=device)]
        with torch.no_grad():
            fake = model.generator(torch.randn(model.batch, model.latent, device=device))
        mixing = torch.rand((model.batch, *(1 for _ in model.shape)), device=device)
        return grad_and_value(lambda weights: critic_loss(model, weights, real, fake, mixing))(critic)

    @torch.compile
    def generator_gradients() -> tuple[Weights, torch.Tensor]:
        latent = torch.randn(model.batch, model.latent, device=device)
        return grad_and_value(lambda weights: generator_loss(model, weights, latent))(generator)

    critic_step, generator_step = _stepping(critic), _stepping(generator)

    def train(count: int) -> None:
        with torch.no_grad():  # `torch.func` differentiates whatever is in force outside
            for _ in range(count):
                for _ in range(CRITIC_STEPS):
                    critic_step(critic_gradients()[0])
                generator_step(generator_gradients()[0])
        wait(device)

    return train


def _stepping(weights: Weights) -> Callable[[Weights], None]:
    """An update of Adam, one kernel for all weights."""
    adam = torch.optim.Adam(weights.values(), 1e-4, (0.5, 0.9), fused=True)

    def step(gradients: Weights) -> None:
        for name, weight in weights.items():
            weight.grad = gradients[name]
        adam.step()

    return step


if __name__ == "__main__":
    serving.serve(trainer)
