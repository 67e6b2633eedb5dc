"""What stops training from inside TensorFlow, in a sentence: data that cannot be read, memory that is not there."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import TrainingFailedError
from ganlab.plugins.blame import sentence
from ganlab.plugins.recipes import selector_of

# The line that an operation was written in, as TensorFlow tells it, innermost last.
_LINE = re.compile(r'File "(.+?)", line (\d+), in (\w+)')


# What the collectives of the remaining workers end with when the connection to one breaks, or its heartbeat stops.
_LOST = ("Collective ops is aborted", "Connection reset", "Connection refused", "Socket closed", "heartbeat")


class WorkerLostError(TrainingFailedError):
    """Another worker of several is gone, and this one cannot go on alone."""


@contextlib.contextmanager
def said_plainly(experiment: Experiment, step: int) -> Iterator[None]:
    """Inside, the errors of TensorFlow's operations become a `TrainingFailedError`.

    Args:
        experiment: What is trained.
        step: Generator updates done before.

    Raises:
        TrainingFailedError: The message names the dataset where the data is at fault.
        WorkerLostError: Another worker is gone.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        replicas = "" if experiment.replicas == 1 else f", {experiment.local_batch} examples on each replica"
        raise TrainingFailedError(
            f"Training failed after step {step}: {_said(error)}. There is not enough memory for "
            f"experiment.batch_size = {experiment.batch_size}{replicas}: lower it, use smaller networks, or spread the "
            "batch over more devices."
        ) from error
    except tf.errors.OpError as error:
        if _worker_lost(experiment, error):
            raise WorkerLostError(
                f"Training stopped after step {step}: another worker is gone ({_said(error)}). Start every worker "
                "again with --resume RUN: they go on from the newest checkpoint."
            ) from error
        selector, said = selector_of(experiment.dataset), _said(error)
        whose = f"{selector}: " if _from_data(error) and not said.startswith(f"{selector}:") else ""
        raise TrainingFailedError(f"Training failed after step {step}: {whose}{said}{_where(error)}") from error


def of_several(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is one of several that train together. One alone drives all hosts of a TPU slice."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def _worker_lost(experiment: Experiment, error: tf.errors.OpError) -> bool:
    return of_several(experiment.strategy) and any(words in str(error) for words in _LOST)


def _said(error: tf.errors.OpError) -> str:
    # The kind of TensorFlow's error says nothing that the sentence does not.
    return sentence(error).removeprefix(f"{type(error).__name__}: ")


def _from_data(error: tf.errors.OpError) -> bool:
    text = str(error)
    inputs = str(Path(__file__).with_name("inputs.py"))
    return "IteratorGetNext" in text or any(path == inputs for path, _, _ in _LINE.findall(text))


def _where(error: tf.errors.OpError) -> str:
    defined, _, _ = str(error).partition("[[{{node")
    lines = _LINE.findall(defined) if "Traceback (" not in defined else []
    return f" ({Path(lines[-1][0]).name}:{lines[-1][1]})" if lines else ""
