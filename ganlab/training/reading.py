"""A trained generator from a run's directory, without its strategy and without training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.composition import make, unique_names
from ganlab.errors import ConfigError, RunError
from ganlab.roles import Evaluator
from ganlab.runs import Run
from ganlab.training.checkpoints import Checkpoint, Checkpoints, restore
from ganlab.training.evaluation import measured
from ganlab.training.networks import Network, build_generator
from ganlab.training.sampling import Sampler


def load_generator(run: Run) -> keras.Model:
    """The generator as samples are drawn from it: `(n, latent_dim) -> (n, *sample_shape)`.

    Args:
        run: A run with a checkpoint, finished or not.

    Returns:
        A Keras model with the averaged weights where the run keeps an average, the trained ones elsewhere.

    Raises:
        RunError: There is no checkpoint yet, or it does not fit the experiment as written down.
    """
    return _generator(run, run.recipe().arguments, find_checkpoint(run))[0].model


def evaluate(run: Run, evaluators: Sequence[Evaluator] = (), *, checkpoint: int | None = None) -> dict[str, float]:
    """Measures the generator of a checkpoint with the very samples that training would have measured.

    Args:
        run: A run with a checkpoint, finished or not.
        evaluators: What to measure by; none for the experiment's own.
        checkpoint: The step of a checkpoint; None for the newest.

    Returns:
        The figures by `<evaluator>/<figure>`.

    Raises:
        RunError: There is no such checkpoint, or it does not fit the experiment as written down.
        ConfigError: The experiment has no evaluators and none are given.
    """
    arguments = run.recipe().arguments
    chosen = list(evaluators) or make(arguments.get("evaluators", ()))
    if not chosen:
        raise ConfigError(
            f"The experiment of {run.path} has no evaluators. Name some: --evaluator frechet_distance, say; "
            "'ganlab plugins' lists them."
        )
    tf.config.experimental.enable_tensor_float_32_execution(arguments.get("precision", "float32") != "float32")
    network, latent_dim = _generator(run, arguments, find_checkpoint(run, checkpoint))
    sample = Sampler(network, network.weights, latent_dim)
    return measured(unique_names(chosen), chosen, sample, make(arguments["dataset"]), run)


def find_checkpoint(run: Run, step: int | None = None) -> Checkpoint:
    """The checkpoint of a step, or the newest.

    Raises:
        RunError: There is none.
    """
    found = Checkpoints(run.path / "checkpoints").all()
    if not found:
        raise RunError(f"{run.path} has no checkpoint yet, so there is no generator to load. Train it further first.")
    for checkpoint in found:
        if checkpoint.step == step:
            return checkpoint
    if step is not None:
        steps = ", ".join(str(checkpoint.step) for checkpoint in found)
        raise RunError(f"{run.path} has no checkpoint of step {step}; those that are kept are of {steps}.")
    return found[-1]


def _generator(run: Run, arguments: Mapping[str, Any], checkpoint: Checkpoint) -> tuple[Network, int]:
    """The generator that samples are drawn from, and the length of its input."""
    # Written down since the data may be elsewhere, or large.
    shape = run.info.get("sample_shape") or make(arguments["dataset"]).sample_shape
    architecture = make(arguments["architecture"])
    generator = build_generator(architecture, tuple(shape), arguments.get("precision", "float32"))
    group = "average" if arguments.get("ema_decay") else "weights"
    variables = {f"generator/{group}/{name}": v.value for name, v in generator.weights.items()}
    variables |= {f"generator/buffers/{name}": v.value for name, v in generator.buffers.items()}
    restore(checkpoint, variables, partial=True)
    return generator, int(architecture.latent_dim)
