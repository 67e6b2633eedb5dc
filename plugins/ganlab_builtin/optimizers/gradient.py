"""Keras optimizers with the defaults of the Wasserstein GAN papers.

Each takes the learning rate's schedule: "constant", or "cosine" or "linear" from `learning_rate` down to
`final_fraction` of it over `decay_steps` of this optimizer's own updates (the critic's makes `critic_steps` of them a
generator update); None for the whole run. The result, an optimizer of Keras, is a template: training makes its own in
the strategy's scope from the config. A value out of its range is a ConfigError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge, Gt, Lt
from ganlab.lazy import keras

if TYPE_CHECKING:
    from ganlab_builtin.optimizers.schedules import Decay

SCHEDULES = ("constant", "cosine", "linear")


def adam(
    *,
    learning_rate: Annotated[float, Gt(0)] = 1e-4,
    beta_1: Annotated[float, Ge(0), Lt(1)] = 0.5,
    beta_2: Annotated[float, Ge(0), Lt(1)] = 0.9,
    epsilon: Annotated[float, Gt(0)] = 1e-7,
    corrected_epsilon: bool = False,
    schedule: Literal["constant", "cosine", "linear"] = "constant",
    decay_steps: Annotated[int, Ge(1)] | None = None,
    final_fraction: Annotated[float, Ge(0), Lt(1)] = 0.0,
) -> keras.optimizers.Optimizer:
    """Adam (Kingma and Ba, 2015) with the moments of Gulrajani et al., "Improved Training of Wasserstein GANs" (2017).

    Args:
        learning_rate: The step size, at the start of the schedule.
        beta_1: Decay of the gradient's average. Arjovsky et al. found training unstable with the usual 0.9.
        beta_2: Decay of the squared gradient's average.
        epsilon: Added to the square root of that average.
        corrected_epsilon: Whether it is added after the correction of the average for its start at zero, as in the
            paper's algorithm 1 and in PyTorch, and not before it, as in Keras and TensorFlow. Before, it counts
            `1 / sqrt(1 - beta_2**t)` times as much in update t: with 0.999, 32 times in the first.
        schedule: How the learning rate falls.
        decay_steps: Updates until it has fallen; None for the whole run.
        final_fraction: The share of the learning rate that is left then.
    """
    rate = _rate("adam", learning_rate, schedule, decay_steps, final_fraction)
    from ganlab_builtin.optimizers.fused import Adam

    return Adam(learning_rate=rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, corrected_epsilon=corrected_epsilon)


def adamw(
    *,
    learning_rate: Annotated[float, Gt(0)] = 1e-4,
    weight_decay: Annotated[float, Ge(0)] = 0.01,
    beta_1: Annotated[float, Ge(0), Lt(1)] = 0.0,
    beta_2: Annotated[float, Ge(0), Lt(1)] = 0.9,
    epsilon: Annotated[float, Gt(0)] = 1e-8,
    schedule: Literal["constant", "cosine", "linear"] = "constant",
    decay_steps: Annotated[int, Ge(1)] | None = None,
    final_fraction: Annotated[float, Ge(0), Lt(1)] = 0.0,
) -> keras.optimizers.Optimizer:
    """AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization" (2019), algorithm 2.

    Before each step of Adam every weight is multiplied by `1 - learning_rate * weight_decay`, biases included, as in
    PyTorch. The defaults are those of adversarial flow models (ByteDance-Seed/Adversarial-Flow-Models 519601d,
    configs/train/afm/train_afm_1nfe.yaml:83).

    Args:
        learning_rate: The step size, at the start of the schedule.
        weight_decay: What share of a weight is taken off in a step, for each unit of the learning rate.
        beta_1: Decay of the gradient's average.
        beta_2: Decay of the squared gradient's average.
        epsilon: Added to the square root of that average, after its correction for the start at zero.
        schedule: How the learning rate falls.
        decay_steps: Updates until it has fallen; None for the whole run.
        final_fraction: The share of the learning rate that is left then.
    """
    rate = _rate("adamw", learning_rate, schedule, decay_steps, final_fraction)
    from ganlab_builtin.optimizers.fused import Adam

    moments = {"beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon}
    return Adam(learning_rate=rate, weight_decay=weight_decay, corrected_epsilon=True, **moments)


def muon(
    *,
    learning_rate: Annotated[float, Gt(0)] = 1e-4,
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.95,
    weight_decay: Annotated[float, Ge(0)] = 0.0,
    adam_names: Sequence[str] = ("score", "embedding"),
    beta_1: Annotated[float, Ge(0), Lt(1)] = 0.5,
    beta_2: Annotated[float, Ge(0), Lt(1)] = 0.9,
    epsilon: Annotated[float, Gt(0)] = 1e-8,
    schedule: Literal["constant", "cosine", "linear"] = "constant",
    decay_steps: Annotated[int, Ge(1)] | None = None,
    final_fraction: Annotated[float, Ge(0), Lt(1)] = 0.0,
) -> keras.optimizers.Optimizer:
    """Muon: Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024), with AdamW for the rest.

    Nesterov's momentum of each kernel, as the matrix (everything else, outputs), is replaced by a matrix whose singular
    values are near one. Its step is `0.2 sqrt(max(rows, columns))` times that (Liu et al., "Muon is scalable for LLM
    training", 2025, equation 4), so that the learning rate is one for Adam. Weights with one axis or none, and those
    of `adam_names`, are updated by Adam.

    Args:
        learning_rate: The step size, at the start of the schedule, for both.
        momentum: Decay of the gradient's average of matrices.
        weight_decay: What share of a weight is taken off in a step, for each unit of the learning rate, as in
            `optimizers.adamw`.
        adam_names: Regular expressions; the weights in whose paths one is found are updated by Adam. The authors ask
            for it in the first and the last layer of a network.
        beta_1: Adam's decay of the gradient's average.
        beta_2: Adam's decay of the squared gradient's average.
        epsilon: Added to the square root of that average, after its correction for the start at zero.
        schedule: How the learning rate falls.
        decay_steps: Updates until it has fallen; None for the whole run.
        final_fraction: The share of the learning rate that is left then.
    """
    rate = _rate("muon", learning_rate, schedule, decay_steps, final_fraction)
    from ganlab_builtin.optimizers.orthogonalized import Muon

    moments = {"beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon, "momentum": momentum}
    names, decay = list(adam_names), weight_decay or None
    return Muon(learning_rate=rate, adam_names=names, weight_decay=decay, corrected_epsilon=True, **moments)


def rmsprop(
    *,
    learning_rate: Annotated[float, Gt(0)] = 5e-5,
    rho: Annotated[float, Ge(0), Lt(1)] = 0.99,
    epsilon: Annotated[float, Gt(0)] = 1e-10,
    schedule: Literal["constant", "cosine", "linear"] = "constant",
    decay_steps: Annotated[int, Ge(1)] | None = None,
    final_fraction: Annotated[float, Ge(0), Lt(1)] = 0.0,
) -> keras.optimizers.Optimizer:
    """RMSProp (Tieleman and Hinton, 2012) as in Arjovsky et al., "Wasserstein GAN" (2017), algorithm 1.

    Args:
        learning_rate: The step size, at the start of the schedule.
        rho: Decay of the squared gradient's average: 0.99 in that paper's own code; 0.9 in the clipping experiments of
            "Improved Training of Wasserstein GANs".
        epsilon: Added to that average under the square root, and therefore small.
        schedule: How the learning rate falls.
        decay_steps: Updates until it has fallen; None for the whole run.
        final_fraction: The share of the learning rate that is left then.
    """
    rate = _rate("rmsprop", learning_rate, schedule, decay_steps, final_fraction)
    return keras.optimizers.RMSprop(learning_rate=rate, rho=rho, epsilon=epsilon)


def sgd(
    *,
    learning_rate: Annotated[float, Gt(0)] = 1e-3,
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.0,
    nesterov: bool = False,
    schedule: Literal["constant", "cosine", "linear"] = "constant",
    decay_steps: Annotated[int, Ge(1)] | None = None,
    final_fraction: Annotated[float, Ge(0), Lt(1)] = 0.0,
) -> keras.optimizers.Optimizer:
    """Stochastic gradient descent, which hides no factor in the gradient: compare replica counts with it.

    Args:
        learning_rate: The step size, at the start of the schedule. Ten times the default makes a critic under a
            gradient penalty of weight 10 chaotic, and then rounding alone makes replica counts differ.
        momentum: Decay of the velocity; 0.0 for none.
        nesterov: Whether the gradient is taken as if after the velocity's step. It needs momentum.
        schedule: How the learning rate falls.
        decay_steps: Updates until it has fallen; None for the whole run.
        final_fraction: The share of the learning rate that is left then.
    """
    if nesterov and not momentum:
        raise ganlab.ConfigError(
            "optimizers.sgd.nesterov = True has no effect with momentum = 0.0. "
            "Set optimizers.sgd.momentum, for example to 0.9."
        )
    rate = _rate("sgd", learning_rate, schedule, decay_steps, final_fraction)
    return keras.optimizers.SGD(learning_rate=rate, momentum=momentum, nesterov=nesterov)


def extragradient(
    *,
    learning_rate: Annotated[float, Gt(0)] = 1e-3,
    schedule: Literal["constant", "cosine", "linear"] = "constant",
    decay_steps: Annotated[int, Ge(1)] | None = None,
    final_fraction: Annotated[float, Ge(0), Lt(1)] = 0.0,
) -> keras.optimizers.Optimizer:
    """Extragradient: Gidel et al., "A variational inequality perspective on GANs" (2019), algorithm 2 without averages.

    All networks step ahead together by gradient descent, and the gradient taken there moves the weights from where they
    were: `x' = x - r F(x)`, `x <- x - r F(x')`, with F the gradient of each network by its own loss. A projection is
    applied after both. With `experiment.critic_steps = 1` generator and critic move simultaneously, as in the paper,
    and not the generator after the critic, as by other optimizers. With more, each critic update steps ahead anew; the
    generator steps ahead once, before them, and moves by the gradient where the critic last stepped ahead to. Both
    gradients have the same examples and random numbers, as in Mishchenko et al., "Revisiting stochastic extragradient"
    (2020). Twice the work of `optimizers.sgd`; metrics are those at the weights ahead.

    Args:
        learning_rate: The step size r, at the start of the schedule.
        schedule: How the learning rate falls.
        decay_steps: Updates until it has fallen; None for the whole run.
        final_fraction: The share of the learning rate that is left then.
    """
    rate = _rate("extragradient", learning_rate, schedule, decay_steps, final_fraction)
    from ganlab_builtin.optimizers.games import Extragradient

    return Extragradient(learning_rate=rate)


def optimistic_adam(
    *,
    learning_rate: Annotated[float, Gt(0)] = 1e-4,
    beta_1: Annotated[float, Ge(0), Lt(1)] = 0.5,
    beta_2: Annotated[float, Ge(0), Lt(1)] = 0.9,
    epsilon: Annotated[float, Gt(0)] = 1e-8,
    schedule: Literal["constant", "cosine", "linear"] = "constant",
    decay_steps: Annotated[int, Ge(1)] | None = None,
    final_fraction: Annotated[float, Ge(0), Lt(1)] = 0.0,
) -> keras.optimizers.Optimizer:
    """Optimistic Adam: Daskalakis et al., "Training GANs with optimism" (2018), algorithm 1.

    With `s[t]` the step of Adam, `x <- x - 2 s[t] + s[t-1]`: the next gradient is predicted to be like the last. It
    needs one gradient an update. The paper's players move simultaneously; here the generator moves after the critic.

    Args:
        learning_rate: The step size, at the start of the schedule.
        beta_1: Decay of the gradient's average.
        beta_2: Decay of the squared gradient's average.
        epsilon: Added to the square root of that average, after its correction for the start at zero.
        schedule: How the learning rate falls.
        decay_steps: Updates until it has fallen; None for the whole run.
        final_fraction: The share of the learning rate that is left then.
    """
    rate = _rate("optimistic_adam", learning_rate, schedule, decay_steps, final_fraction)
    from ganlab_builtin.optimizers.games import OptimisticAdam

    return OptimisticAdam(learning_rate=rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon)


def _rate(name: str, start: float, schedule: Any, decay_steps: int | None, final_fraction: float) -> float | Decay:
    """The learning rate as Keras takes it: a number, or a schedule."""
    if schedule not in SCHEDULES:
        raise ganlab.ConfigError(
            f"optimizers.{name}.schedule = {schedule!r} must be one of {', '.join(map(repr, SCHEDULES))}."
        )
    if schedule == "constant":
        for parameter, value, unset in (("decay_steps", decay_steps, None), ("final_fraction", final_fraction, 0.0)):
            if value != unset:
                raise ganlab.ConfigError(
                    f"optimizers.{name}.{parameter} = {value!r} has no effect with schedule = 'constant'. "
                    f"Set optimizers.{name}.schedule = 'cosine' or 'linear', or leave {parameter} out."
                )
        return start

    from ganlab_builtin.optimizers.schedules import Decay

    return Decay(start=start, shape=schedule, decay_steps=decay_steps, final_fraction=final_fraction)
