"""Turns TensorFlow's errors into one sentence each: unreadable data, too little memory, a lost worker."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import ConfigError, TrainingFailedError
from ganlab.plugins.plugin_errors import sentence
from ganlab.plugins.recipes import selector_of
from ganlab.support.full_disk import is_full_disk

# The line that an operation was written in, as TensorFlow prints it, innermost last.
_LINE = re.compile(r'File "(.+?)", line (\d+), in (\w+)')


# Parts of the errors in the remaining workers' collectives when the connection to one breaks or its heartbeat stops.
_LOST = ("Collective ops is aborted", "Connection reset", "Connection refused", "Socket closed", "heartbeat")


class WorkerLostError(TrainingFailedError):
    """Another of several workers is gone, and this one cannot continue alone."""


@contextlib.contextmanager
def translated_errors(experiment: Experiment, step: int) -> Iterator[None]:
    """Context manager: turns the errors of TensorFlow's operations into a `TrainingFailedError`.

    Raises:
        TrainingFailedError: An operation failed; the message names the dataset if the data is at fault.
        WorkerLostError: Another worker is gone.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        if is_full_disk(error):
            raise TrainingFailedError(
                f"Training failed after step {step}: {_message(error)}. Free some space and resume from the newest "
                "checkpoint."
            ) from error
        replicas = "" if experiment.replicas == 1 else f", {experiment.local_batch} examples on each replica"
        raise TrainingFailedError(
            f"Training failed after step {step}: {_message(error)}. There is not enough memory for "
            f"experiment.batch_size = {experiment.batch_size}{replicas}: lower it, use smaller networks, or spread the "
            "batch over more devices."
        ) from error
    except tf.errors.OpError as error:
        if of_several(experiment.strategy) and any(words in str(error) for words in _LOST):
            again = "with --resume RUN: they resume from the newest checkpoint" if step else "with the same command"
            raise WorkerLostError(
                f"Training stopped after step {step}: another worker is gone ({_message(error)}). Start every worker "
                f"again {again}."
            ) from error
        selector, said = selector_of(experiment.dataset), _message(error)
        whose = f"{selector}: " if _from_data(error) and not said.startswith((f"{selector}:", f"{selector}.")) else ""
        raise TrainingFailedError(
            f"Training failed after step {step}: {whose}{said}{_where(error)}{_remedy(said)}"
        ) from error


def of_several(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is one of several that train together. One alone drives all hosts of a TPU slice."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def _message(error: tf.errors.OpError) -> str:
    # The type of TensorFlow's error, or of ganlab's within, adds nothing to the sentence.
    return sentence(error).removeprefix(f"{type(error).__name__}: ").removeprefix(f"{ConfigError.__name__}: ")


def _from_data(error: tf.errors.OpError) -> bool:
    text = str(error)
    inputs = str(Path(__file__).with_name("inputs.py"))
    return "IteratorGetNext" in text or any(path == inputs for path, _, _ in _LINE.findall(text))


def _remedy(said: str) -> str:
    if "eterministic" not in said:  # TensorFlow has no kernel that gives the same bits each time
        return ""
    return ". Set experiment.deterministic = False to train without one; resumed runs then differ by rounding."


def _where(error: tf.errors.OpError) -> str:
    defined, _, _ = str(error).partition("[[{{node")
    lines = _LINE.findall(defined) if "Traceback (" not in defined else []
    return f" ({Path(lines[-1][0]).name}:{lines[-1][1]})" if lines else ""
