"""WGAN-GP in PyTorch, eager; see tf_loop.py for the networks. Needs torch, in an environment of its own.

    python tools/peers/torch_eager.py mlp

Prints a line of JSON for each line on standard input, a number of iterations: the seconds that they took.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from torch import nn

from peers import serving

CRITIC_STEPS = 5


class ConvolutionalGenerator(nn.Module):
    """The paper's generator for MNIST: 4, 8 (cut to 7), 14, 28 pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self._channels = channels
        self.project = nn.Linear(128, 4 * 4 * 4 * channels)
        self.first = nn.ConvTranspose2d(4 * channels, 2 * channels, 5, 2, 2, 1)
        self.second = nn.ConvTranspose2d(2 * channels, channels, 5, 2, 2, 1)
        self.third = nn.ConvTranspose2d(channels, 1, 5, 2, 2, 1)

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        """`(n, 128) -> (n, 1, 28, 28)`."""
        x = torch.relu(self.project(latent)).view(-1, 4 * self._channels, 4, 4)
        x = torch.relu(self.first(x))[:, :, :7, :7]
        return torch.tanh(self.third(torch.relu(self.second(x))))


@dataclass(frozen=True)
class Model:
    """Networks and their training settings, as in tf_loop.py."""

    generator: nn.Module
    critic: nn.Module
    shape: tuple[int, ...]
    latent: int
    batch: int
    weight: float


def mlp(*, batch: int = 256, width: int = 512) -> Model:
    """The paper's toy networks."""

    def network(outputs: int) -> nn.Module:
        hidden = [
            nn.Linear(2, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
        ]
        return nn.Sequential(*hidden, nn.Linear(width, outputs))

    return Model(network(2), network(1), (2,), 2, batch, 0.1)


def dcgan(*, batch: int = 64, channels: int = 64) -> Model:
    """The paper's networks for MNIST."""
    blocks: list[nn.Module] = []
    for before, after in ((1, channels), (channels, 2 * channels), (2 * channels, 4 * channels)):
        blocks += [nn.Conv2d(before, after, 5, 2, 2), nn.LeakyReLU(0.2)]
    critic = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(4 * 4 * 4 * channels, 1))
    return Model(ConvolutionalGenerator(channels), critic, (1, 28, 28), 128, batch, 10.0)


def trainer(kind: str) -> serving.Train:
    """Trains the named model for the requested iterations."""
    model = {"mlp": mlp, "dcgan": dcgan}[kind]()
    data = torch.rand((4096, *model.shape)) * 2 - 1
    critic_optimizer, generator_optimizer = (
        torch.optim.Adam(network.parameters(), 1e-4, (0.5, 0.9)) for network in (model.critic, model.generator)
    )

    def update_critic() -> None:
        real = data[torch.randint(0, len(data), (model.batch,))]
        with torch.no_grad():
            fake = model.generator(torch.randn(model.batch, model.latent))
        mixing = torch.rand((model.batch, *(1 for _ in model.shape)))
        points = (mixing * real + (1 - mixing) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(model.critic(points).sum(), points, create_graph=True)
        slopes = (slope.flatten(1).square().sum(1) + 1e-12).sqrt()
        loss = model.critic(fake).mean() - model.critic(real).mean() + model.weight * (slopes - 1).square().mean()
        critic_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        critic_optimizer.step()

    def train(count: int) -> None:
        for _ in range(count):
            for _ in range(CRITIC_STEPS):
                update_critic()
            # The critic needs no gradient here, which a careful user would skip.
            model.critic.requires_grad_(False)
            loss = -model.critic(model.generator(torch.randn(model.batch, model.latent))).mean()
            generator_optimizer.zero_grad(set_to_none=True)
            loss.backward()
            generator_optimizer.step()
            model.critic.requires_grad_(True)

    return train


if __name__ == "__main__":
    serving.serve(trainer)
