"""A trained generator from a run's directory, without its strategy and without training."""

from __future__ import annotations

import keras

from ganlab.composition import make
from ganlab.errors import RunError
from ganlab.runs import Run
from ganlab.training.checkpoints import Checkpoints, restore
from ganlab.training.networks import build_generator


def load_generator(run: Run) -> keras.Model:
    """The generator as samples are drawn from it: `(n, latent_dim) -> (n, *sample_shape)`.

    Args:
        run: A run with a checkpoint, finished or not.

    Returns:
        A Keras model with the averaged weights where the run keeps an average, the trained ones elsewhere.

    Raises:
        RunError: There is no checkpoint yet, or it does not fit the experiment as written down.
    """
    checkpoint = Checkpoints(run.path / "checkpoints").latest()
    if checkpoint is None:
        raise RunError(f"{run.path} has no checkpoint yet, so there is no generator to load. Train it further first.")
    arguments = run.recipe().arguments
    # Written down since the data may be elsewhere, or large.
    shape = run.info.get("sample_shape") or make(arguments["dataset"]).sample_shape
    architecture = make(arguments["architecture"])
    generator = build_generator(architecture, tuple(shape), arguments.get("precision", "float32"))
    group = "average" if arguments.get("ema_decay") else "weights"
    variables = {f"generator/{group}/{name}": v.value for name, v in generator.weights.items()}
    variables |= {f"generator/buffers/{name}": v.value for name, v in generator.buffers.items()}
    restore(checkpoint, variables, partial=True)
    return generator.model
