"""Training for reproductions: an experiment file, a few overrides, and a view of the result."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import ganlab
from ganlab.composition import Experiment, compose
from ganlab.config import load
from ganlab.training.diagnostics.view import CriticFunctions, View
from ganlab.training.graph.trainer import Trainer

# Critic updates in an iteration of the files of figure 1a, where nothing else is trained.
UPDATES_EACH = 10
# Reproductions are small: one device is fastest, and gives the same results as several.
_ONE_DEVICE = "experiment.strategy=@strategies.one_device()"


def composed(file: str, params: Sequence[str] = ()) -> Experiment:
    """The experiment of a file in gin/paper, with overrides (as of `--param`), on one device."""
    return compose(load([f"paper/{file}"], [_ONE_DEVICE, *params]))


def started(file: str, params: Sequence[str] = ()) -> Trainer:
    """A trainer of such an experiment, before its first step."""
    return Trainer(composed(file, params))


def trained(file: str, params: Sequence[str] = ()) -> Trainer:
    """A trainer of such an experiment, after its last step."""
    trainer = started(file, params)
    trainer.train(trainer.experiment.steps)
    return trainer


def view(trainer: Trainer) -> View:
    """The current critic, as diagnostics see it."""
    experiment, state = trainer.experiment, trainer.state
    return View(experiment, state, CriticFunctions(experiment, state), state.step)


@contextmanager
def run(file: str, params: Sequence[str] = ()) -> Iterator[ganlab.Run]:
    """Trains such an experiment into a run directory, with its diagnostics and evaluators, which is then removed."""
    with tempfile.TemporaryDirectory(prefix="ganlab-reproduction-") as folder:
        yield ganlab.train(composed(file, params), Path(folder) / "run")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Context manager: prints to standard error what was done and how long it took."""
    begun = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
