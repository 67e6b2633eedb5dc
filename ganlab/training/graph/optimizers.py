"""A run's own optimizers, made from those of its experiment."""

from __future__ import annotations

import functools

import keras

from ganlab.composition import Experiment
from ganlab.errors import IncompatibleError
from ganlab.interfaces import Schedule
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph.learning_rate import ByNumber, Followed, fill_decay_steps
from ganlab.training.graph.roles import GENERATOR, Role, written

# Settings of Keras optimizers that act on each replica's own gradient, before the sum over replicas, or not at all.
_PER_REPLICA = ("clipnorm", "global_clipnorm", "clipvalue", "gradient_accumulation_steps")


def own_optimizer(role: Role, experiment: Experiment, schedule: Schedule | None) -> keras.optimizers.Optimizer:
    """Makes the optimizer of a role in scope: one made elsewhere would silently let replicas drift apart.

    Raises:
        IncompatibleError: The experiment's optimizer has a setting that would be wrong, or without effect.
    """
    template, turn = role.optimizer_of(experiment), experiment.turn
    made, decays = _made(written(role.optimizer), template, turn.total(role.side, experiment.steps))
    rate = made._learning_rate if decays else None
    if schedule is not None:
        rate = Followed(schedule, functools.partial(turn.step_of, role.side), experiment.steps)
    if rate is not None:  # a generator that waits has the rate of its own moves
        made.learning_rate = rate if turn.waits and role.side == GENERATOR else ByNumber(rate)
    return made


def _made(part: str, template: keras.optimizers.Optimizer, updates: int) -> tuple[keras.optimizers.Optimizer, bool]:
    """An optimizer as the template, and whether its learning rate falls over the whole run."""
    if isinstance(template, keras.optimizers.LossScaleOptimizer):
        raise IncompatibleError(
            f"{part} is a LossScaleOptimizer, for float16, which ganlab does not train in: losses are not "
            "scaled. Pass the optimizer inside it."
        )
    with plugin_code(selector_of(template), "get_config"):
        config = template.get_config()
    for setting in _PER_REPLICA:
        if config.get(setting):
            raise IncompatibleError(
                f"{part} sets {setting} = {config[setting]!r}, which acts on each replica's own gradient "
                "before these are summed, so that the result would depend on the number of replicas. Leave it out."
            )
    if config.get("use_ema"):
        raise IncompatibleError(f"{part} sets use_ema. Use experiment.ema_decay, which ganlab samples from.")
    if config.get("loss_scale_factor"):
        raise IncompatibleError(
            f"{part} sets loss_scale_factor = {config['loss_scale_factor']!r}. Gradients would be divided "
            "by it, but losses are not scaled. Leave it out."
        )
    decays = fill_decay_steps(config, updates)
    with plugin_code(selector_of(template), "from_config"):
        made = type(template).from_config(config)
    # On several replicas, Keras calls update_step outside of every replica's apply.
    for method in ("build", "update_step"):
        setattr(made, method, plugin_code(selector_of(template), method)(getattr(made, method)))
    return made, decays
