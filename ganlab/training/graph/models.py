"""The declared inputs and outputs of Keras models, and errors for models that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from ganlab.errors import ContractError
from ganlab.training.graph.refusals import graph_of
from ganlab.training.graph.roles import CRITIC

SCORE = "score"
SCORES: list[tuple[int | None, ...]] = [(None, 1), (None,)]


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


def takes(model: keras.Model, shape: tuple[int, ...], count: int) -> bool:
    """Whether a model takes rows of a shape as the first of this many inputs, as far as its inputs are known."""
    inputs = _inputs(model)
    if not inputs:
        return True
    own = tuple(inputs[0].shape[1:])
    return (
        len(inputs) == count and len(own) == len(shape) and all(a in (None, b) for a, b in zip(own, shape, strict=True))
    )


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


def numbers_of(model: keras.Model, names: Sequence[str]) -> list[str]:
    """Those of these names that a model's last inputs have, in the order of its inputs."""
    return [x.name for x in _inputs(model) if x.name in names]


def weighted_classes(model: keras.Model, numbers: int = 0) -> int | None:
    """The classes of a model whose last input, but for numbers, is `(n, classes)` of floats; None for whole ones."""
    inputs = _inputs(model)
    inputs = inputs[: len(inputs) - numbers]
    if len(inputs) < 2 or len(inputs[-1].shape) != 2 or not str(inputs[-1].dtype).startswith("float"):
        return None
    return int(inputs[-1].shape[1])


def outputs_of(role: str, maker: str, model: Any) -> tuple[str, ...]:
    """The names of the outputs of a further network, `score` for one that returns scores alone.

    Raises:
        ContractError: It is no model, or its inputs are not known.
    """
    if not _inputs(keras_model(role, maker, model)):
        raise ContractError(
            f"The {role} of {maker}, {model.name!r}, does not say what its inputs are. Make it by "
            "keras.Model(inputs, outputs), or a keras.Sequential that begins with a keras.Input."
        )
    output = graph_of(model).output
    if isinstance(output, dict):
        return tuple(name for name, value in output.items() if name != SCORE or tuple(value.shape) in SCORES)
    return (SCORE,) if getattr(output, "shape", None) in SCORES else ()
