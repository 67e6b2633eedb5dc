"""Checks what an experiment is composed of: what its parts are, their sizes, and how its batches divide."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from typing import Any

from ganlab.composition.parts import LISTS, MAPPINGS, OPTIONAL, PARTS
from ganlab.errors import ConfigError, ContractError, IncompatibleError
from ganlab.interfaces import Architecture, Augmentation, Constraint, Dataset, Diagnostic, Evaluator, Loss
from ganlab.interfaces.loss import has_own
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import Factory, selector_of


def check_roles(settings: Mapping[str, Any]) -> None:
    """Refuses a part that is not of its kind, one where several stand in a list, or whose attribute hides a method."""
    from ganlab.lazy import keras, tensorflow

    roles = {
        "strategies": (tensorflow.distribute.Strategy, "tf.distribute.Strategy"),
        "datasets": (Dataset, "ganlab.Dataset"),
        "architectures": (Architecture, "ganlab.Architecture"),
        "losses": (Loss, "ganlab.Loss"),
        "constraints": (Constraint, "ganlab.Constraint"),
        "augmentations": (Augmentation, "ganlab.Augmentation"),
        "optimizers": (keras.optimizers.Optimizer, "keras.optimizers.Optimizer"),
        "evaluators": (Evaluator, "ganlab.Evaluator"),
        "diagnostics": (Diagnostic, "ganlab.Diagnostic"),
    }
    for part, kind in PARTS.items():
        role, called = roles[kind]
        if part == "critic_optimizer" and settings[part] is None and not has_own(settings["loss"], "critic"):
            continue
        for setting, value, several in _settings(part, settings[part]):
            if several and not isinstance(value, (list, tuple)):
                one = ": put it in brackets" if isinstance(value, role) else ""
                raise ConfigError(f"experiment.{setting} is {value!r}; it must be a list of {called} objects{one}.")
            for item in value if several else (value,):
                if not isinstance(item, role):
                    makes = isinstance(item, (type, Factory))
                    remedy = "call it, and give what it returns" if makes else f"'ganlab plugins' lists the {kind}"
                    if role is Dataset and not makes:
                        remedy += "; an array, a tf.data.Dataset or a sequence of examples is taken, too"
                    raise ConfigError(
                        f"experiment.{setting} is {' '.join(repr(item).split()):.200}, of type {type(item).__name__}; "
                        f"it must be a {called}: {remedy}."
                    )
                if called.startswith("ganlab."):
                    _check_methods(item, role)


def _settings(part: str, value: Any) -> Iterator[tuple[str, Any, bool]]:
    """A part's setting, or one for each network that it names: how it is written, its value, whether that is a list."""
    if part not in MAPPINGS:
        if value is not None or part not in OPTIONAL:
            yield part, value, part in LISTS
        return
    if not isinstance(value, (Mapping, type(None))):
        raise ConfigError(
            f"experiment.{part} is {value!r}; it must be a dict from names of networks, for example {{'encoder': ...}}."
        )
    for name, item in (value or {}).items():
        yield f"{part}[{name!r}]", item, MAPPINGS[part] == "several"


# The attribute of a dataset that says whether it has one of these methods.
_DECLARED = {"labels": "classes", "conditions": "condition_shape", "sources": "source_shape"}


def _check_methods(item: Any, role: type) -> None:
    """Refuses a component whose own attribute hides a method, as that of a parameter of the same name does."""
    for name, value in getattr(item, "__dict__", {}).items():
        if name in _DECLARED and getattr(item, _DECLARED[name], None) is None:
            continue  # of a dataset without classes nobody asks for labels
        if callable(getattr(role, name, None)) and not callable(value):
            raise ContractError(
                f"{selector_of(item)} sets self.{name} = {value!r:.60}, which hides its method {name}. Give the "
                f"attribute another name, for example self._{name}."
            )


def check_sizes(dataset: Dataset, architecture: Architecture) -> None:
    """Refuses sizes that would otherwise cause an error deep inside TensorFlow."""
    name = selector_of(dataset)
    with plugin_code(name, "size"):
        size = getattr(dataset, "size", None)
    if size is not None and not _is_whole(size):
        raise ContractError(
            f"{name}.size is {size!r}; it must be the number of examples, a whole number of at least 1, or None for an "
            "endless dataset. Is its source empty?"
        )
    for attribute in ("sample_shape", "condition_shape", "source_shape"):
        with plugin_code(name, attribute):
            shape = getattr(dataset, attribute, None)
        wrong = not isinstance(shape, (list, tuple)) or not shape or not all(map(_is_whole, shape))
        if wrong and (shape is not None or attribute == "sample_shape"):
            raise ContractError(
                f"{name}.{attribute} is {shape!r}; it must be a tuple of whole numbers of at least 1: (height, width, "
                "channels) for images, (d,) for vectors."
            )
    name = selector_of(architecture)
    with plugin_code(name, "latent_dim"):
        latent_dim = getattr(architecture, "latent_dim", None)
    if not _is_whole(latent_dim) and latent_dim != 0:
        raise ContractError(
            f"{name}.latent_dim is {latent_dim!r}; it must be a whole number of at least 1, or 0 for a generator that "
            "takes no latent vector."
        )


def check_division(sizes: Mapping[str, int], *, replicas: int, microbatches: int) -> None:
    """Refuses batches that do not divide equally.

    Raises:
        IncompatibleError: A size does not divide; the message names one that does.
    """
    for name, size in sizes.items():
        if size % replicas:
            raise IncompatibleError(
                f"experiment.{name} = {size} does not divide over {replicas} replicas: each must see equally many "
                f"examples. Use a multiple of {replicas}, for example {_round_up(size, replicas)}."
            )
        parts = replicas * microbatches
        if size % parts:
            where = "one replica" if replicas == 1 else f"each of {replicas} replicas"
            raise IncompatibleError(
                f"experiment.{name} = {size} does not divide into {microbatches} microbatches on {where}. Use a "
                f"multiple of {parts}, for example {_round_up(size, parts)}."
            )


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
