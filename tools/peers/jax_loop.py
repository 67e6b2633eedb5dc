"""WGAN-GP in JAX, the whole loop in one program; see tf_loop.py for the networks. Needs jax, in its own environment.

    python tools/peers/jax_loop.py mlp

See serving.py for its options and answers. A network is a function of its weights, which are a list of kernels and
biases by turns, in the order and the shapes of Keras'.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from peers import serving

CRITIC_STEPS = 5
RATE, MEAN, SQUARE, SMALL = 1e-4, 0.5, 0.9, 1e-7  # Adam's
Weights = list[jax.Array]
Network = Callable[[Sequence[jax.Array], jax.Array], jax.Array]
_LAYOUT = ("NHWC", "HWIO", "NHWC")


@dataclass(frozen=True)
class Model:
    """Networks and their training settings, as in tf_loop.py.

    Attributes:
        generator: Its function.
        critic: Its function.
        shapes: The shapes of the generator's weights, and of the critic's.
        shape: The shape of one example.
        latent: The length of the generator's input.
        batch: Examples in a batch.
        weight: The gradient penalty's factor.
    """

    generator: Network
    critic: Network
    shapes: tuple[list[tuple[int, ...]], list[tuple[int, ...]]]
    shape: tuple[int, ...]
    latent: int
    batch: int
    weight: float


def mlp(*, batch: int = 256, width: int = 512, depth: int = 3) -> Model:
    """The paper's toy networks."""

    def network(weights: Sequence[jax.Array], x: jax.Array) -> jax.Array:
        for kernel, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
            x = jax.nn.relu(x @ kernel + bias)
        return x @ weights[-2] + weights[-1]

    def shapes(outputs: int) -> list[tuple[int, ...]]:
        sides = [2, *[width] * depth, outputs]
        return [shape for pair in pairwise(sides) for shape in (pair, pair[1:])]

    return Model(network, network, (shapes(2), shapes(1)), (2,), 2, batch, 0.1)


def dcgan(*, batch: int = 64, channels: int = 64) -> Model:
    """The paper's networks for MNIST."""
    one, two, four, inputs = channels, 2 * channels, 4 * channels, 4 * 4 * 4 * channels

    def generator(weights: Sequence[jax.Array], latent: jax.Array) -> jax.Array:
        x = jax.nn.relu(latent @ weights[0] + weights[1]).reshape(-1, 4, 4, four)
        x = jax.nn.relu(_up(x, *weights[2:4]))[:, :7, :7]
        return jnp.tanh(_up(jax.nn.relu(_up(x, *weights[4:6])), *weights[6:8]))

    def critic(weights: Sequence[jax.Array], x: jax.Array) -> jax.Array:
        for i in (0, 2, 4):
            x = lax.conv_general_dilated(x, weights[i], (2, 2), "SAME", dimension_numbers=_LAYOUT) + weights[i + 1]
            x = jax.nn.leaky_relu(x, 0.2)
        return x.reshape(len(x), -1) @ weights[6] + weights[7]

    of_generator = [(128, inputs), (inputs,), (5, 5, two, four), (two,), (5, 5, one, two), (one,), (5, 5, 1, one), (1,)]
    of_critic = [(5, 5, 1, one), (one,), (5, 5, one, two), (two,), (5, 5, two, four), (four,), (inputs, 1), (1,)]
    return Model(generator, critic, (of_generator, of_critic), (28, 28, 1), 128, batch, 10.0)


def _up(x: jax.Array, kernel: jax.Array, bias: jax.Array) -> jax.Array:
    """A transposed convolution to twice the side, with a kernel `(rows, columns, output, input)`."""
    return lax.conv_transpose(x, kernel, (2, 2), "SAME", dimension_numbers=_LAYOUT, transpose_kernel=True) + bias


MODELS = {"mlp": mlp, "dcgan": dcgan}


def lowered(model: Model, precision: str) -> Model:
    """The model, its networks computing in that precision with results in float32: losses are."""
    if precision != "mixed_bfloat16":
        return model

    def lower(network: Network) -> Network:
        def call(weights: Sequence[jax.Array], x: jax.Array) -> jax.Array:
            low = [weight.astype(jnp.bfloat16) for weight in weights]
            return network(low, x.astype(jnp.bfloat16)).astype(jnp.float32)

        return call

    networks = lower(model.generator), lower(model.critic)
    return Model(*networks, model.shapes, model.shape, model.latent, model.batch, model.weight)


def critic_loss(model: Model, weights: Weights, real: jax.Array, fake: jax.Array, mixing: jax.Array) -> jax.Array:
    """The critic's loss with the gradient penalty at `mixing * real + (1 - mixing) * fake`."""
    slope = jax.grad(lambda points: model.critic(weights, points).sum())(mixing * real + (1 - mixing) * fake)
    slopes = jnp.sqrt(jnp.square(slope).reshape(len(slope), -1).sum(1) + 1e-12)
    penalty = model.weight * jnp.square(slopes - 1).mean()
    return model.critic(weights, fake).mean() - model.critic(weights, real).mean() + penalty


def generator_loss(model: Model, weights: Weights, critic: Weights, latent: jax.Array) -> jax.Array:
    """The generator's loss."""
    return -model.critic(critic, model.generator(weights, latent)).mean()


def adam(weights: Weights, state: Any, gradients: Weights) -> tuple[Weights, Any]:
    """An update of Adam, with its epsilon as Keras has it: beside the root of an average that is not corrected."""
    done, means, squares = state
    done = done + 1
    means = [MEAN * m + (1 - MEAN) * g for m, g in zip(means, gradients, strict=True)]
    squares = [SQUARE * s + (1 - SQUARE) * g * g for s, g in zip(squares, gradients, strict=True)]
    rate = RATE * jnp.sqrt(1 - SQUARE**done) / (1 - MEAN**done)
    moved = [w - rate * m / (jnp.sqrt(s) + SMALL) for w, m, s in zip(weights, means, squares, strict=True)]
    return moved, (done, means, squares)


def initial(shapes: Sequence[tuple[int, ...]], random: np.random.Generator) -> Weights:
    """Kernels uniform as He's, biases zero."""
    made = []
    for shape in shapes:
        reach = np.sqrt(6 / np.prod(shape[:-1])) if len(shape) > 1 else 0.0
        made.append(jnp.asarray(random.uniform(-reach, reach, shape), jnp.float32))
    return made


def trainer(asked: serving.Asked) -> serving.Train:
    """Trains the model for the requested iterations."""
    prepare(asked)
    model, random = lowered(MODELS[asked.kind](), asked.precision), np.random.default_rng(0)
    data = jnp.asarray(random.uniform(-1, 1, (4096, *model.shape)), jnp.float32)
    networks = [initial(shapes, random) for shapes in model.shapes]
    averages = [(jnp.zeros([]), *([jnp.zeros_like(w) for w in weights] for _ in range(2))) for weights in networks]
    state = networks, averages, jax.random.key(0)

    def update_critic(i: int, state: Any) -> Any:
        (generator, critic), (of_generator, of_critic), key = state
        key, chosen, drawn, mixed = jax.random.split(key, 4)
        real = data_of(chosen)
        fake = model.generator(generator, jax.random.normal(drawn, (model.batch, model.latent)))
        mixing = jax.random.uniform(mixed, (model.batch, *(1 for _ in model.shape)))
        gradients = jax.grad(partial(critic_loss, model))(critic, real, fake, mixing)
        critic, of_critic = adam(critic, of_critic, gradients)
        return [generator, critic], [of_generator, of_critic], key

    def data_of(key: jax.Array) -> jax.Array:
        return data[jax.random.randint(key, (model.batch,), 0, len(data))]

    def iteration(i: jax.Array, state: Any) -> Any:
        (generator, critic), (of_generator, of_critic), key = lax.fori_loop(0, CRITIC_STEPS, update_critic, state)
        key, drawn = jax.random.split(key)
        latent = jax.random.normal(drawn, (model.batch, model.latent))
        gradients = jax.grad(partial(generator_loss, model))(generator, critic, latent)
        generator, of_generator = adam(generator, of_generator, gradients)
        return [generator, critic], [of_generator, of_critic], key

    @partial(jax.jit, donate_argnums=0)
    def many(state: Any, count: jax.Array) -> Any:
        return lax.fori_loop(0, count, iteration, state)

    def train(count: int) -> None:
        nonlocal state
        state = jax.block_until_ready(many(state, jnp.int32(count)))

    return train


def prepare(asked: serving.Asked) -> None:
    """Selects device and number format, for the whole process."""
    # Otherwise recent GPUs multiply float32 numbers as TensorFloat-32, which ganlab's float32 does not.
    products = {"float32": "highest", "tensorfloat32": "tensorfloat32"}.get(asked.precision, "default")
    jax.config.update("jax_default_matmul_precision", products)
    jax.config.update("jax_platforms", {"cpu": "cpu", "gpu": "cuda"}[asked.device])
    try:
        jax.devices()
    except (RuntimeError, AssertionError):  # the second where its build is for CPUs alone
        serving.refuse("JAX sees no GPU. Install jax[cuda12], and a driver, or use --device cpu.")


if __name__ == "__main__":
    serving.serve(trainer)
