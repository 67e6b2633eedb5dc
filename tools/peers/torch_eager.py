"""WGAN-GP in PyTorch, eager; see tf_loop.py for the networks. Needs torch, in an environment of its own.

    python tools/peers/torch_eager.py mlp

See serving.py for its options and answers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


class Single(nn.Module):
    """A network whose results are float32, whatever its layers compute in: losses are."""

    def __init__(self, layers: nn.Module, device: str, precision: str) -> None:
        super().__init__()
        self.layers = layers
        self._device, self._lower = device, precision == "mixed_bfloat16"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """As the layers."""
        if not self._lower:
            return self.layers(x)
        with torch.autocast(self._device, torch.bfloat16):
            return self.layers(x).float()


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


MODELS = {"mlp": mlp, "dcgan": dcgan}


def switch(asked: serving.Asked) -> str:
    """Selects device and number format; returns the device, `cpu` or `cuda`."""
    if asked.device == "gpu" and not torch.cuda.is_available():
        serving.refuse("PyTorch sees no GPU. Install its build for CUDA, and a driver, or use --device cpu.")
    # cuDNN multiplies float32 numbers as TensorFloat-32 by default, which ganlab's float32 does not.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = asked.precision != "float32"
    # Sizes never change, so that trying cuDNN's algorithms once pays.
    torch.backends.cudnn.benchmark = True
    return "cuda" if asked.device == "gpu" else "cpu"


def prepare(asked: serving.Asked) -> tuple[Model, torch.Tensor, str]:
    """Selects device and number format; returns the model, its data and the device, `cpu` or `cuda`."""
    device = switch(asked)
    # A GPU's convolutions want channels last.
    layout = torch.channels_last if asked.device == "gpu" and asked.kind == "dcgan" else torch.preserve_format
    model = MODELS[asked.kind]()
    networks = [
        Single(network, device, asked.precision).to(device=device, memory_format=layout)
        for network in (model.generator, model.critic)
    ]
    data = torch.rand((4096, *model.shape), device=device) * 2 - 1
    made = Model(networks[0], networks[1], model.shape, model.latent, model.batch, model.weight)
    return made, data, device


def critic_loss(model: Model, real: torch.Tensor, fake: torch.Tensor, mixing: torch.Tensor) -> torch.Tensor:
    """The critic's loss with the gradient penalty at `mixing * real + (1 - mixing) * fake`."""
    points = (mixing * real + (1 - mixing) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(model.critic(points).sum(), points, create_graph=True)
    slopes = (slope.flatten(1).square().sum(1) + 1e-12).sqrt()
    return model.critic(fake).mean() - model.critic(real).mean() + model.weight * (slopes - 1).square().mean()


def load(network: nn.Module, weights: Sequence[Any]) -> None:
    """Sets a network's weights from arrays in the order and the shapes of Keras', kernel and bias by turns.

    Convolutions pad two pixels before and one after where TensorFlow pads one before and two after. So theirs are
    mirrored: a critic computes here what it does there of mirrored images.
    """
    layers = [m for m in network.modules() if isinstance(m, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d))]
    convolutional = any(isinstance(layer, nn.Conv2d) for layer in layers)
    with torch.no_grad():
        for layer, kernel, bias in zip(layers, weights[::2], weights[1::2], strict=True):
            given = torch.tensor(kernel)
            if isinstance(layer, nn.Linear) and convolutional:  # its inputs are pixels: rows, columns, channels
                side = 4
                pixels = given.view(side, side, -1, given.shape[1]).flip(0, 1)
                layer.weight.copy_(pixels.permute(3, 2, 0, 1).flatten(1))
            elif isinstance(layer, nn.Linear):
                layer.weight.copy_(given.T)
            else:
                layer.weight.copy_(given.flip(0, 1).permute(3, 2, 0, 1))
            layer.bias.copy_(torch.tensor(bias))


def trainer(asked: serving.Asked) -> serving.Train:
    """Trains the model for the requested iterations."""
    model, data, device = prepare(asked)
    critic_optimizer, generator_optimizer = (
        torch.optim.Adam(network.parameters(), 1e-4, (0.5, 0.9)) for network in (model.critic, model.generator)
    )

    def update_critic() -> None:
        real = data[torch.randint(0, len(data), (model.batch,), device=device)]
        with torch.no_grad():
            fake = model.generator(torch.randn(model.batch, model.latent, device=device))
        mixing = torch.rand((model.batch, *(1 for _ in model.shape)), device=device)
        loss = critic_loss(model, real, fake, mixing)
        critic_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        critic_optimizer.step()

    def train(count: int) -> None:
        for _ in range(count):
            for _ in range(CRITIC_STEPS):
                update_critic()
            # The critic needs no gradient here, which a careful user would skip.
            model.critic.requires_grad_(False)
            loss = -model.critic(model.generator(torch.randn(model.batch, model.latent, device=device))).mean()
            generator_optimizer.zero_grad(set_to_none=True)
            loss.backward()
            generator_optimizer.step()
            model.critic.requires_grad_(True)
        wait(device)

    return train


def wait(device: str) -> None:
    """Waits until everything queued is done."""
    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    serving.serve(trainer)
