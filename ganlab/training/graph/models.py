"""The declared inputs and outputs of Keras models, and errors for models that do not fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import keras

from ganlab.errors import ConfigError, ContractError
from ganlab.training.graph.refusals import graph_of
from ganlab.training.graph.roles import CRITIC

SCORE = "score"
SCORES: list[tuple[int | None, ...]] = [(None, 1), (None,)]
# The inputs that get what belongs to a row, each with the fact that has its shape, and what to do without.
GIVEN = {
    "conditions": ("condition_shape", "use a dataset that has them (condition_shape)"),
    "source": ("source_shape", "set experiment.source, or use a dataset of pairs (source_shape)"),
}


def keras_model(role: str, maker: str, model: Any) -> keras.Model:
    """A model that an architecture made, if it is one."""
    if not isinstance(model, keras.Model):
        raise ContractError(f"{maker} returned {model!r} as its {role}; it must return a keras.Model.")
    return model


def _inputs(model: keras.Model) -> list[Any]:
    """The symbolic inputs of a model; empty if they are not known."""
    try:
        return list(getattr(model, "inputs", None) or [])
    except ValueError:  # a keras.Sequential that is not built
        return []


def takes(model: keras.Model, shape: tuple[int, ...], count: int, given: Collection[str] = ()) -> bool:
    """Whether a model takes rows of a shape as the first of this many inputs, as far as its inputs are known.

    The inputs with names in `given` do not count.
    """
    inputs = [x for x in _inputs(model) if x.name not in given]
    return not _inputs(model) or (len(inputs) == count and (not count or _fits(inputs[0], shape)))


def given_inputs(
    role: str, model: keras.Model, facts: Mapping[str, Any], shape: tuple[int, ...], count: int
) -> tuple[str, ...]:
    """The inputs of a model that get the conditions and the source of each row, by their names; `facts` has the shapes.

    Where the experiment has neither, and the model takes `count` inputs, first of `shape`, their names mean nothing.
    """
    given = {x.name: x for x in _inputs(model) if x.name in GIVEN}
    shapes = {name: facts.get(GIVEN[name][0]) for name in given}
    if not any(shapes.values()) and takes(model, shape, count):
        return ()
    for name, x in given.items():
        if (own := shapes[name]) is None or not _fits(x, own):
            has = f"has none: {GIVEN[name][1]}" if own is None else f"has one of shape {own}: use other data"
            raise ConfigError(
                f"The {role} {model.name!r} has an input {name!r} of shape {tuple(x.shape[1:])}, and the experiment "
                f"{has}, or another architecture."
            )
    return tuple(given)


def _fits(x: Any, shape: tuple[int, ...]) -> bool:
    own = tuple(x.shape[1:])
    return len(own) == len(shape) and all(a in (None, b) for a, b in zip(own, shape, strict=True))


def side_inputs(model: keras.Model, count: int, given: Collection[str]) -> tuple[str, ...]:
    """The names of a model's inputs but `given` after the first so many: what augmentations give beside examples."""
    return tuple(x.name for x in _inputs(model) if x.name not in given)[count:]


def described_inputs(model: keras.Model) -> str:
    """The inputs of a model as messages name them."""
    return " and ".join(f"{x.name} {tuple(x.shape[1:])}" for x in _inputs(model))


def check_output(role: str, model: keras.Model, output: Any, allowed: list[tuple[int | None, ...]]) -> None:
    """Refuses an output of another shape than these."""
    score = output.get(SCORE) if role == CRITIC and isinstance(output, dict) else output
    if score is None:
        raise ContractError(
            f"The critic {model.name!r} returns a dict of {sorted(output)}; it must have a {SCORE!r}, "
            f"{_either(allowed)}."
        )
    shape = tuple(score.shape) if isinstance(score, keras.KerasTensor) else type(score).__name__
    if shape not in allowed:
        which = f" as its {SCORE!r}" if score is not output else ""
        raise ContractError(
            f"The {role} {model.name!r} returns the shape {shape}{which}; it must be {_either(allowed)}."
        )


def _either(shapes: list[tuple[int | None, ...]]) -> str:
    return " or ".join(map(str, shapes))


def numbers_of(model: keras.Model, names: Collection[str]) -> list[str]:
    """Those of these names that a model's inputs have, in their order."""
    return [x.name for x in _inputs(model) if x.name in names]


def weighted_classes(model: keras.Model, given: Collection[str] = ()) -> int | None:
    """The classes of a model whose last input but `given` is `(n, classes)` of floats; None for one of numbers."""
    inputs = [x for x in _inputs(model) if x.name not in given]
    last = inputs[-1] if len(inputs) > 1 or (inputs and given) else None
    if last is None or len(last.shape) != 2 or not str(last.dtype).startswith("float"):
        return None
    return int(inputs[-1].shape[1])


def outputs_of(role: str, maker: str, model: Any) -> tuple[str, ...]:
    """The names of the outputs of a further network, `score` for one that returns scores alone."""
    if not _inputs(keras_model(role, maker, model)):
        raise ContractError(
            f"The {role} of {maker}, {model.name!r}, does not say what its inputs are. Make it by "
            "keras.Model(inputs, outputs), or a keras.Sequential that begins with a keras.Input."
        )
    output = graph_of(model).output
    if isinstance(output, dict):
        return tuple(name for name, value in output.items() if name != SCORE or tuple(value.shape) in SCORES)
    return (SCORE,) if getattr(output, "shape", None) in SCORES else ()
