"""The constraint role: how a critic is kept (near) 1-Lipschitz, as a handful of pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

    Tensors = Mapping[str, tf.Tensor]
    Critic = Callable[[tf.Tensor], tf.Tensor]
else:
    Tensors = Mapping
    Critic = Callable


@dataclass(frozen=True)
class Batch:
    """The data of one critic update on one replica. Fields may be added, but are never removed.

    Attributes:
        real: Data, `(local_batch, *sample_shape)`, float32.
        fake: Samples of the generator, same shape and dtype, without gradient.
        labels: None at present.
        size: The global batch size.
        step: The number of this critic update, a scalar int64 tensor.
    """

    real: tf.Tensor
    fake: tf.Tensor
    labels: tf.Tensor | None
    size: int
    step: tf.Tensor


class Replica(Protocol):
    """The replica that a plugin's function runs on: its randomness, its peers and its metrics."""

    id: tf.Tensor
    count: int

    def uniform(self, shape: Sequence[int]) -> tf.Tensor:
        """Uniform numbers in [0, 1), float32. `shape[0]` is the local batch; row i belongs to example i."""

    def normal(self, shape: Sequence[int]) -> tf.Tensor:
        """Standard normal numbers, float32. `shape[0]` is the local batch; row i belongs to example i."""

    def sum(self, x: tf.Tensor) -> tf.Tensor:
        """The sum of `x` over replicas, on every replica. Differentiable."""

    def mean(self, x: tf.Tensor) -> tf.Tensor:
        """The mean of `x` over replicas, on every replica. Differentiable."""

    def max(self, x: tf.Tensor) -> tf.Tensor:
        """The elementwise maximum of `x` over replicas, on every replica. Differentiable."""

    def log(self, name: str, values: tf.Tensor, reduce: Literal["mean", "max", "min", "sum"] = "mean") -> None:
        """Logs `values` reduced over this replica's batch, and then over replicas, as `constraints/<plugin>/<name>`."""


class Constraint:
    """Keeps a critic (near) 1-Lipschitz.

    Override only the methods that your constraint needs. Every method except `prepare` is a pure function: same inputs,
    same outputs, no variables, no Python or TensorFlow randomness (draw from `replica`). The core owns the variables,
    divides by the global batch, sums gradients over replicas, draws seeds and checks shapes.

    `weights` maps names to the critic's trainable weights, float32 for any precision. The names are Keras paths, stable
    over replicas, processes and resume (`ganlab.functional.named_weights` returns a model's).

    Attributes:
        every: The core computes the penalty only in every `every`-th critic update and multiplies it by `every` (lazy
            regularization, Karras et al., StyleGAN2, 2020). A constraint that lets its user choose sets it in
            `__init__`; its penalty must then work without collectives.
        differentiates: Whether `penalty` or `transform` takes the critic's gradient by its examples, for which its
            layers must have second derivatives. None means yes if one of them is overridden. A constraint that only
            compares scores sets False, and works with any layer.
        metric_help: Explanations of its metrics by name, for `ganlab config explain`. `<layer>` and the like
            stand for any text.
    """

    metric_help: ClassVar[Mapping[str, str]] = {}

    every: int = 1
    differentiates: bool | None = None

    def prepare(self, critic: keras.Model) -> None:
        """Inspects the built critic and stores static facts on `self`, for example layers and strides.

        Raises:
            IncompatibleError: The constraint cannot be applied to this critic.
        """

    def parameters(self, weights: Tensors) -> Tensors:
        """Extra trainable weights, for example the gains of weight normalization. The core owns and trains them."""
        return {}

    def initial_state(self, weights: Tensors) -> Tensors:
        """Values kept between updates, for example the vectors of a power iteration. The core owns the variables."""
        return {}

    def advance(self, weights: Tensors, state: Tensors, batch: Batch, replica: Replica) -> Tensors:
        """The next state: called once per critic update, before it, outside its gradient.

        No gradient flows through the result, eagerly, in a graph or compiled: its inputs count as constants. The result
        must be the same on every replica: reduce whatever depends on data with `replica.sum/mean/max`.
        """
        return state

    def reparameterize(self, weights: Tensors, state: Tensors) -> Tensors:
        """The weights that the critic computes with, under the same names. Differentiable.

        `state` holds the state and the parameters of this constraint. Every critic call of an update uses the result.
        """
        return weights

    def transform(self, critic: Critic) -> Critic:
        """Wraps the critic function itself, `(n, *sample_shape) -> (n,)`, as gradient normalization does."""
        return critic

    def penalty(self, critic: Critic, batch: Batch, state: Tensors, replica: Replica) -> tf.Tensor | None:
        """A value per example to add to the critic's loss, `(local_batch,)` float32, or None.

        Row i may depend only on example i and on the values from `state` and `replica`.
        """
        return None

    def weight_penalty(self, weights: Tensors) -> tf.Tensor | None:
        """A scalar to add to the critic's loss, from the effective (reparameterized) weights, or None."""
        return None

    def project(self, weights: Tensors) -> Tensors:
        """The weights moved into the allowed set: applied after each critic update, and once before the first."""
        return weights

    def diagnose(self, metrics: Mapping[str, float]) -> str | None:
        """A warning if this constraint's own logged metrics show that it does not work, or None.

        Called on the host with each logged row: the reduced values of the metrics that it logged, by its own names for
        them. The first warning of a run is shown; state what was seen, what it means and which setting to try.
        """
        return None

    def lipschitz_bound(self, weights: Tensors) -> Any:
        """A certified upper bound of the critic's Lipschitz constant from the effective weights, or None.

        The bound is that of the critic as a Keras model with these weights, in Euclidean norms;
        `ganlab.lipschitz.certificate` computes it for the usual layers. It is not called in a run where another
        constraint overrides `transform`.
        """
        return None
