"""The constraint role: how a network is kept (near) 1-Lipschitz or regular, as a handful of pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from ganlab.interfaces.optional_parameters import takes_optional

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

    Tensors = Mapping[str, tf.Tensor]
    Critic = Callable[[tf.Tensor], tf.Tensor]
    Generator = Callable[[tf.Tensor], tf.Tensor]
else:
    Tensors = Mapping
    Critic = Callable
    Generator = Callable


class Network(Protocol):
    """A network of an update: a pure function of its input, with the weights that its constraints give it.

    Attributes:
        weights: Its trained weights by name, float32, as they are before its constraints' `reparameterize`.
    """

    weights: Tensors

    def __call__(self, x: Any) -> Any:
        """The model's output, float32, for what the model takes; a critic's scores as `(n,)`.

        Generator and critic get the row's labels, conditions and source where they take them, from the batch or, of the
        inputs called `conditions` and `source`, in a dict by the names of inputs; further networks get only `x`.
        """

    def outputs(self, x: Any) -> Tensors:
        """Of a critic: everything that it returns, by name, the score as above."""

    def at(self, weights: Tensors) -> Network:
        """The same function with other weights, one for every name; its constraints reparameterize and wrap it alike.

        Differentiable by these weights: a tape must watch them before this is called.
        """


@dataclass(frozen=True)
class Batch:
    """The data of one update on one replica. Fields may be added, but are never removed.

    In a critic's update, `real` and `fake` are what the critic sees: augmented where the experiment has augmentations.
    In a generator's update, `fake` are its samples with their gradient: before augmentation for `generator_penalty`, as
    the critic sees them for losses; None for `advance`. `real` is None there, unless the loss sets `pairs`.

    Attributes:
        real: Data, `(local_batch, *sample_shape)`, float32.
        fake: Samples of the generator, same shape and dtype; without gradient in a critic's update.
        labels: The classes of the real examples, `(local_batch,)` int64; None if the dataset has none. In a conditional
            experiment sample i was made for label i.
        size: The global batch size.
        step: The number of this update of the critic, or of the generator, a scalar int64 tensor.
        latent: The latent vectors of the samples, `(local_batch, latent_dim)` float32. The core always gives them.
        real_outputs: All outputs of the critic for the real examples by name, float32; only for losses.
        fake_outputs: The same for the samples.
        conditions: Those of the real examples, for which the samples are made, or None.
        source: What the samples are made from: the real examples' own in a dataset of pairs, or None.
        side: The side outputs of augmentations by name, one for each row of both `real` and `fake`.
    """

    real: tf.Tensor
    fake: tf.Tensor
    labels: tf.Tensor | None
    size: int
    step: tf.Tensor
    latent: tf.Tensor = None
    real_outputs: Mapping[str, tf.Tensor] = field(default_factory=dict)
    fake_outputs: Mapping[str, tf.Tensor] = field(default_factory=dict)
    conditions: tf.Tensor | None = None
    source: tf.Tensor | None = None
    side: Mapping[str, tf.Tensor] = field(default_factory=dict)


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

    def gather(self, x: tf.Tensor) -> tf.Tensor:
        """The rows of all replicas, `(count * len(x), ...)` in the order of the global batch. Differentiable."""

    def log(self, name: str, values: tf.Tensor, reduce: Literal["mean", "max", "min", "sum"] = "mean") -> None:
        """Logs `values` reduced over this replica's batch, and then over replicas, as `constraints/<plugin>/<name>`.

        A loss, an augmentation or a constraint of the generator logs under its own kind's name.
        """


class Constraint:
    """Keeps a critic (near) 1-Lipschitz, or regularizes either network.

    Override only the methods that your constraint needs. Every method except `prepare` is a pure function: same inputs,
    same outputs, no variables, no Python or TensorFlow randomness (draw from `replica`). The core owns the variables,
    divides by the global batch, sums gradients over replicas, draws seeds and checks shapes.

    `weights` maps names to the network's trainable weights, float32 for any precision. The names are Keras paths,
    stable over replicas, processes and resume (`ganlab.functional.named_weights` returns a model's).

    In `experiment.constraints` it acts on the critic; in `experiment.generator_constraints` on the generator, where
    `generator_penalty` takes the place of `penalty`; in `experiment.network_constraints` on a further network as on the
    critic or the generator, by its side, and its first function is that network. A parameter that is documented as
    optional is passed by name to a method that has it, and left out otherwise.

    Attributes:
        every: The core computes the penalty only in every `every`-th update and multiplies it by `every` (lazy
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
        """Inspects the built network and stores static facts on `self`, for example layers and strides.

        Raises:
            IncompatibleError: The constraint cannot be applied to this network.
        """

    def parameters(self, weights: Tensors) -> Tensors:
        """Extra trainable weights, for example the gains of weight normalization. The core owns and trains them."""
        return {}

    def initial_state(self, weights: Tensors) -> Tensors:
        """Values kept between updates, for example the vectors of a power iteration. The core owns the variables."""
        return {}

    @takes_optional
    def advance(self, weights: Tensors, state: Tensors, batch: Batch, replica: Replica) -> Tensors:
        """The next state: called once per update of the network, before it, outside its gradient.

        No gradient flows through the result, eagerly, in a graph or compiled: its inputs count as constants. The result
        must be the same on every replica: reduce whatever depends on data with `replica.sum/mean/max`.

        Optional parameters: `critic`, the critic's function as it is before the update, for example for a multiplier
        that follows its slopes; on the generator also `generator`, `latent -> samples`; `networks`.
        """
        return state

    def reparameterize(self, weights: Tensors, state: Tensors) -> Tensors:
        """The weights that the network computes with, under the same names. Differentiable.

        `state` holds the state and the parameters of this constraint. Every call of an update uses the result.
        """
        return weights

    @takes_optional
    def transform(self, critic: Critic) -> Critic:
        """Wraps the network's function: the critic's, `(n, *sample_shape) -> (n,)`, as gradient normalization does.

        On the generator it wraps `(n, latent_dim) -> (n, *sample_shape)`, during training. Optional parameters:
        `replica`; on the generator `critic`, the critic's function.
        """
        return critic

    @takes_optional
    def penalty(self, critic: Critic, batch: Batch, state: Tensors, replica: Replica) -> tf.Tensor | None:
        """A value per example to add to the critic's loss, `(local_batch,)` float32, or None.

        Row i may depend only on example i and on the values from `state` and `replica`. Optional parameters:
        `generator`, `(n, latent_dim) -> (n, *sample_shape)`, for samples of other latent vectors; `networks`, all
        networks by name. No gradient reaches the weights of the generator's side.
        """
        return None

    @takes_optional
    def generator_penalty(
        self, generator: Generator, critic: Critic, batch: Batch, state: Tensors, replica: Replica
    ) -> tf.Tensor | None:
        """A value per sample to add to the generator's loss, `(local_batch,)` float32, or None.

        Called for `experiment.generator_constraints`. `batch` has `latent`, `labels` and the samples as `fake`; the
        rule for rows is that of `penalty`. Optional parameter: `networks`.
        """
        return None

    @takes_optional
    def weight_penalty(self, weights: Tensors) -> tf.Tensor | None:
        """A scalar to add to the network's loss, from the effective (reparameterized) weights, or None.

        Optional parameter: `state`.
        """
        return None

    def project(self, weights: Tensors) -> Tensors:
        """The weights moved into the allowed set: applied after each update, and once before the first."""
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
