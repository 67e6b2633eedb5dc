"""The diagnostic role: figures and pictures that show the state of a critic."""

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
    """The findings of one look at a critic. Fields may be added, but are never removed.

    Attributes:
        figures: Numbers by name, for example `mean` or `activations/hidden_1`: each a curve.
        replicas: The values of figures on each replica's share, by the same names, in replica order.
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
        name: Its Keras name; the second layer of one name has `#2` after it.
        kind: Its Keras class, for example `Conv2D`.
        activation: The nonlinearity that it ends in or is, for example `relu`; empty for none.
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
        weights: Gradients of the mean loss over the share by each raw weight, in the weight's shape.
        activations: Gradients of each example's own loss by each layer's output for it, `(2 * local_batch, ...)`: the
            real examples, then the generated ones.
    """

    weights: Mapping[str, np.ndarray]
    activations: Mapping[str, np.ndarray]


class CriticView(Protocol):
    """A critic at one step, as a diagnostic sees it: numpy arrays, float32, read-only.

    The critic is the one that training uses, reparameterized and wrapped by the constraints; its layers behave as in
    inference. Everything is computed on demand, and only once if two diagnostics ask for it. All of it is a function of
    the state, the seed and the step: a resumed run finds the same.
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
        """The generated examples of that update, `(batch_size, *sample_shape)`, without augmentation."""

    @property
    def labels(self) -> np.ndarray | None:
        """The classes of the rows of `real` and of `fake`, `(batch_size,)` int64; None for an unconditional critic."""

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
        """The first n real examples, or as many as there are, and n generated ones; the same choice at every step."""

    def more_labels(self, n: int) -> np.ndarray | None:
        """The classes of the rows of both arrays of `more(n)`; None for an unconditional critic."""

    def random(self) -> np.random.Generator:
        """A random generator seeded by seed and step; every call returns a new one."""

    def scores(self, x: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        """The critic's scores of `(n, *sample_shape)`: `(n,)`.

        Args:
            x: The points.
            labels: The class of each, for a conditional critic; None for those of the batch, from the first row on.
        """

    def slopes(self, x: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        """The norm of the critic's gradient at each of `(n, *sample_shape)`, with these classes: `(n,)`."""

    def input_gradients(self, x: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        """The critic's gradient at each of `(n, *sample_shape)`, with these classes: of this shape."""

    def activations(self, x: np.ndarray, labels: np.ndarray | None = None) -> Mapping[str, np.ndarray]:
        """The output of each layer for `(n, *sample_shape)`, with these classes, by the layer's name: `(n, ...)`."""

    def gradients(self, replica: int) -> LossGradients:
        """Gradients of the critic's loss over the share of one replica."""


class Diagnostic:
    """Examines the critic at intervals, without any influence on training.

    Its findings are written under `diagnostics/<name>/`. It runs only on the chief, between updates.

    Attributes:
        every: Generator updates between looks; 0 for each evaluation. Every diagnostic also looks at the end.
        metric_help: Explanations of its figures by name, for `ganlab config explain`. `<layer>` and the like
            stand for any text.
    """

    metric_help: ClassVar[Mapping[str, str]] = {}

    every: int = 0

    def look(self, critic: CriticView) -> Findings:
        """The findings at this step: a pure function of the view.

        It is called once before training, and the result dropped, so that a diagnostic that cannot work fails early.

        Raises:
            IncompatibleError: The diagnostic does not apply to this critic or these data.
        """
        raise NotImplementedError

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """A sentence on the problem that the figures of the last look show, and the setting to try; or None.

        It appears in TensorBoard's text `health` and in run.json for as long as it holds.
        """
        return None
