"""Critics to look at: a real one of a small experiment, and one of plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from making import component as component
from small import small

import ganlab
from ganlab.training.diagnostics.view import CriticFunctions, View
from ganlab.training.graph.trainer import Trainer


def experiment(replicas=0, **parts):
    return small(replicas, **{"critic_steps": 2, "steps": 4, "log_every": 2, **parts})


class Views:
    """One experiment's views, at any step.

    Attributes:
        trainer: What trains the critic.
        functions: What the views compute with.
    """

    def __init__(self, replicas=0, **parts):
        self.trainer = Trainer(experiment(replicas, **parts))
        self.functions = CriticFunctions(self.trainer.experiment, self.trainer.state)

    def __call__(self, step=0):
        return View(self.trainer.experiment, self.trainer.state, self.functions, step)


@dataclass
class Given:
    """A `ganlab.CriticView` made of arrays and of a function, `(n, ...) -> (n,)`, or of that and labels `(n,)`."""

    function: object = None
    gradient: object = None
    layers: tuple = ()
    weights: dict = field(default_factory=dict)
    effective: dict = field(default_factory=dict)
    shares: list = field(default_factory=list)
    outputs: dict = field(default_factory=dict)
    bounds: dict = field(default_factory=dict)
    real: np.ndarray = None
    fake: np.ndarray = None
    replicas: int = 1
    step: int = 7
    dataset: object = None
    labels: np.ndarray = None

    def share(self, replica):
        local = len(self.real) // self.replicas
        return slice(replica * local, (replica + 1) * local)

    def more(self, n):
        return self.real[:n], self.fake[:n]

    def random(self):
        return np.random.default_rng(3)

    def more_labels(self, n):
        return None if self.labels is None else self.labels[:n]

    def scores(self, x, labels=None):
        return self.function(*([x] if labels is None else [x, labels])).astype(np.float32)

    def slopes(self, x, labels=None):
        gradient = self.gradient(*([x] if labels is None else [x, labels]))
        return np.linalg.norm(gradient.reshape(len(x), -1), axis=1).astype(np.float32)

    def input_gradients(self, x, labels=None):
        return self.gradient(*([x] if labels is None else [x, labels])).astype(np.float32)

    def activations(self, x):
        assert len(x) == len(self.real) + len(self.fake)
        return self.outputs

    def gradients(self, replica):
        return self.shares[replica]


def layer(name, kind="Dense", activation=""):
    weights = (f"{name}/kernel", f"{name}/bias") if kind == "Dense" else ()
    return ganlab.CriticLayer(name, kind, activation, weights)
