"""The loss role: the losses of critic and generator, per example."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from ganlab.interfaces.optional_parameters import takes_optional

if TYPE_CHECKING:
    import tensorflow as tf

    from ganlab.interfaces.constraint import Batch, Network, Tensors


class Loss:
    """The two losses of an adversarial game. The core sums over the batch and divides by its global size.

    Optional parameters are passed by name to a method that has them: `batch` (`ganlab.Batch`), whose `labels`,
    `real_outputs` and `fake_outputs` have the classes and everything that the critic returned; `replica`
    (`ganlab.Replica`), for statistics of the global batch, metrics and random numbers; `networks`, all networks by name
    (`ganlab.Network`), of which the method's own side is trained; and `state`, of a loss with a state.

    Row i of a result belongs to example i. A loss that mixes examples does it over the global batch, through
    `replica.mean`, `sum`, `max` or `gather`: statistics of one replica's batch would depend on the number of replicas.

    Attributes:
        pairs: Whether the generator's loss compares samples with real examples: then `generator` gets the scores of
            real examples as its second argument, and its batch has them as `real`. They have the samples' labels.
        labels: Whether it needs the examples' classes; without them the experiment is refused.
        outputs: The outputs of the critic that it needs beside `score`, for example `("logits",)`; a critic without
            them is refused.
        metric_help: Explanations of `critic/loss` and `generator/loss`, by these names, for `ganlab config explain`.
    """

    metric_help: ClassVar[Mapping[str, str]] = {}

    pairs: bool = False
    labels: bool = False
    outputs: tuple[str, ...] = ()

    @takes_optional
    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """The loss that the critic minimizes: `(local_batch,)` from scores of that shape, float32.

        A loss without this method compares batches alone: no critic is made, and there are no critic updates.
        """
        raise NotImplementedError

    @takes_optional
    def generator(self, fake_scores: tf.Tensor) -> tf.Tensor:
        """The loss that the generator minimizes: `(local_batch,)` from scores of that shape, float32.

        With `pairs`, `generator(fake_scores, real_scores)`; without a critic, no scores: `generator(batch)`.
        """
        raise NotImplementedError

    @takes_optional
    def scores(self, batch: Batch, networks: Mapping[str, Network]) -> tuple[tf.Tensor, tf.Tensor] | None:
        """How the critic scores real examples and samples, where that is not `critic(x)`.

        For critics of pairs or of latent vectors: with this method the critic's model may have any inputs. What follows
        scores (both losses, `critic/wasserstein`, `advance`, augmentations) follows these. Constraints that call the
        critic with examples do not fit such a critic; those on its weights do.

        Args:
            batch: The batch; in a generator's update without `pairs` its `real` is None.
            networks: All networks by name. Optional parameter: `replica`.

        Returns:
            The scores of real examples and of samples, `(local_batch,)` each, the first ignored where `real` is None;
            or None for the critic's own.
        """
        return None

    @takes_optional
    def witness(self, batch: Batch) -> Callable[[Tensors], tf.Tensor] | None:
        """The function that the loss tells real from fake by, if that is not the critic's score.

        A loss that compares embeddings needs no score: constraints on slopes would bound a function that nothing
        trains. In the critic's update they get this function in its place, and `critic/wasserstein`, `advance` and
        augmentations follow it.

        Args:
            batch: The batch, with all outputs. Optional parameter: `replica`, for what is taken from the global batch
                once, before the function is called.

        Returns:
            A function of the critic's outputs for some examples by name, `(n,)` float32, higher for real examples; None
            for the score.
        """
        return None

    @takes_optional
    def judged(self, name: str, batch: Batch, networks: Mapping[str, Network]) -> tuple[tf.Tensor, tf.Tensor] | None:
        """The real and the fake rows of a further critic, if they are not the batch's examples and samples.

        CycleGAN's second critic, for example, scores sources. Its constraints, in `experiment.network_constraints`, get
        these rows as `batch.real` and `batch.fake`, and so act where it is trained. No gradient flows through them.

        Args:
            name: The network's.
            batch: The batch of a critic's update.
            networks: All networks by name. Optional parameter: `replica`.

        Returns:
            The rows to score high and those to score low, `(local_batch, ...)` each; None for the batch's own.
        """
        return None

    def initial_state(self) -> Tensors:
        """Values kept between updates, for example moving averages of scores. The core owns the variables."""
        return {}

    @takes_optional
    def advance(self, state: Tensors, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> Tensors:
        """The next state: called after each critic update with the scores of its batch, outside its gradient.

        The result must be the same on every replica. Optional parameters: `batch`, `replica`; `networks`, all networks
        by name as they were before that update.
        """
        return state

    def ready(self, state: Tensors) -> tf.Tensor:
        """Whether the generator moves in this step, a bool scalar: a rule by which it waits for the critic.

        A pure function of the state after the step's critic updates. A step in which the generator waits is a step too:
        the next one trains the critic again, on fresh batches, and `generator/ready` is the fraction of steps in which
        the generator moved. Without this method it moves in each.
        """
        raise NotImplementedError


def has_own(loss: Loss, method: str) -> bool:
    """Whether a loss has a method of its own, rather than that of its base."""
    return getattr(getattr(loss, method), "__func__", None) is not getattr(Loss, method)
