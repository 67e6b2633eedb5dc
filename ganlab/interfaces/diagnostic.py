"""The diagnostic role: figures and pictures that say what state a critic is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from ganlab.interfaces.constraint import Constraint
from ganlab.interfaces.dataset import Dataset

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Findings:
    """What one look at a critic found. New fields may come; fields never go.

    Attributes:
        figures: Numbers by name, such as `mean` or `activations/hidden_1`: each a curve.
        replicas: Of figures by the same names, what each replica's share gives, in replica order.
        histograms: Arrays of any shape by name, whose values are counted into bins.
        pictures: Encoded PNGs by name; `ganlab.pictures` draws some.
    """

    figures: Mapping[str, float] = field(default_factory=dict)
    replicas: Mapping[str, Sequence[float]] = field(default_factory=dict)
    histograms: Mapping[str, np.ndarray] = field(default_factory=dict)
    pictures: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class CriticLayer:
    """One layer of a critic.

    Attributes:
        name: Its Keras name, the second of one name with `#2` after it.
        kind: Its Keras class, such as `Conv2D`.
        activation: The nonlinearity that it ends in or is, such as `relu`; empty for none.
        weights: The names of its trainable weights, as in `CriticView.weights`.
    """

    name: str
    kind: str
    activation: str
    weights: tuple[str, ...]


@dataclass(frozen=True)
class LossGradients:
    """Gradients of the critic's loss over one replica's share; penalties are left out. All float32.

    Attributes:
        weights: Of the mean loss over the share by each raw weight, of the weight's shape.
        activations: Of each example's own loss by each layer's output for it, `(2 * local_batch, ...)`: the real
            examples, then the generated ones.
    """

    weights: Mapping[str, np.ndarray]
    activations: Mapping[str, np.ndarray]


class CriticView(Protocol):
    """A critic at one step, as a diagnostic sees it: numpy arrays, float32, not to be written to.

    The critic is the one that training uses, with the weights that the constraints make of its own and wrapped as they
    wrap it; its layers behave as in inference. What nobody asks for is not computed, and what two diagnostics ask for
    is computed once. All of it is a function of the state, the seed and the step: a resumed run finds the same.
    """

    @property
    def step(self) -> int:
        """Generator updates done."""

    @property
    def replicas(self) -> int:
        """How many replicas train in step."""

    @property
    def dataset(self) -> Dataset:
        """The experiment's dataset."""

    @property
    def constraints(self) -> Mapping[str, Constraint]:
        """Its constraints by name."""

    @property
    def layers(self) -> Sequence[CriticLayer]:
        """The critic's layers from input to output, without those that only hold others."""

    @property
    def real(self) -> np.ndarray:
        """The real examples of the critic update that comes next, `(batch_size, *sample_shape)`."""

    @property
    def fake(self) -> np.ndarray:
        """The generated examples of that update, `(batch_size, *sample_shape)`."""

    @property
    def weights(self) -> Mapping[str, np.ndarray]:
        """The critic's trainable weights by name."""

    @property
    def effective(self) -> Mapping[str, np.ndarray]:
        """The weights that the critic computes with, under the same names."""

    @property
    def bounds(self) -> Mapping[str, float]:
        """Certified upper bounds of its Lipschitz constant, by the constraint that gives one."""

    def share(self, replica: int) -> slice:
        """The rows of `real` and of `fake` that are this replica's in training."""

    def more(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The first real examples of the dataset, n or as many as it has, and n generated ones, alike at every step."""

    def random(self) -> np.random.Generator:
        """A generator of random numbers that begins anew at each call, decided by seed and step."""

    def scores(self, x: np.ndarray) -> np.ndarray:
        """The critic's scores of `(n, *sample_shape)`: `(n,)`."""

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """The norm of the critic's gradient at each of `(n, *sample_shape)`: `(n,)`."""

    def activations(self, x: np.ndarray) -> Mapping[str, np.ndarray]:
        """The output of each layer for `(n, *sample_shape)`, by the layer's name: `(n, ...)`."""

    def gradients(self, replica: int) -> LossGradients:
        """Gradients of the critic's loss over the share of one replica."""


class Diagnostic:
    """Looks at the critic now and then, beside training and without an influence on it.

    What it finds is written under `diagnostics/<name>/`. It runs on the chief alone, between updates.

    Attributes:
        every: Generator updates between looks; 0 for each evaluation. Every diagnostic looks at the end, too.
        metric_help: What its figures mean, by name, for `ganlab config explain`. `<layer>` and the like
            stand for any text.
    """

    metric_help: ClassVar[Mapping[str, str]] = {}

    every: int = 0

    def look(self, critic: CriticView) -> Findings:
        """What is found now: a pure function of the view.

        Before training it is called once and the result dropped, so that what can never work stops no run halfway.

        Raises:
            IncompatibleError: This critic or these data cannot be looked at so.
        """
        raise NotImplementedError

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """What is wrong according to the figures of the last look and which setting to try, or None.

        Said in TensorBoard's text `health` and in run.json for as long as it holds.
        """
        return None
