"""Checks that an experiment file can name a component with the parameters that it was made with."""

from __future__ import annotations

import contextlib
import functools
import inspect
import pickle
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ganlab import hookimpl
from ganlab.commands import LISTS, Recipe, plugins, render
from ganlab.engine import PARTS, described, load, recipe_of
from ganlab.engine import make as make_component
from ganlab.errors import ConfigError
from ganlab.files import scratch_folder
from ganlab_verify import lab
from ganlab_verify.testing import parts

_LITERALS = "numbers, strings, booleans, None, lists, tuples and dicts of them, and components"


def round_trip(kind: str, make: Callable[[], Any]) -> Iterator[str]:
    """Writes the component into an experiment file as runs do, reads it back and makes it again.

    Args:
        kind: Its kind, for example `constraints`.
        make: Makes it.

    Returns:
        One message for each mistake.
    """
    name, factory, given = _construction(kind, make)
    name = name.rpartition(".")[2]  # with its plugin's name before it where two plugins have one of this name
    with _offered(kind, name, factory) as refused:
        if refused:
            yield f"As a plugin's {kind}.{name} it would be refused: {refused}."
            return
        full = Recipe(kind, name, {**_defaults(factory), **given})
        text = render(_experiment(Recipe(kind, name, given)), defaults=True)
        try:
            read = _read(text)
        except ConfigError as error:
            yield (
                f"{kind}.{name} with the parameters {dict(full.arguments)!r} cannot be written in an experiment file: "
                f"{error} Parameters must be {_LITERALS}, of the type that they are annotated with."
            )
            return
        (written,) = [inner for inner in _inner(read) if (inner.kind, inner.name) == (kind, name)][:1]
        for parameter, value in full.arguments.items():
            back = written.arguments.get(parameter, "nothing")
            if not _is(back, value):
                yield (
                    f"{kind}.{name}.{parameter} = {value!r} reads back from an experiment file as {back!r}. Parameters "
                    f"must be {_LITERALS}."
                )
                return
        again, before = make_component(written), make()
        # A function that makes the class makes another one of that name each time.
        if _named(type(again)) != _named(type(before)):
            yield f"Made again from an experiment file it is {again!r}, but it was {before!r}."


def pickling(kind: str, make: Callable[[], Any]) -> Iterator[str]:
    """Pickles the parameters that the component is made with, defaults included.

    Args:
        kind: Its kind.
        make: Makes it.

    Returns:
        One message for each mistake.
    """
    name, factory, given = _construction(kind, make)
    for parameter, value in {**_defaults(factory), **given}.items():
        try:
            same = bool(pickle.loads(pickle.dumps(value)) == value)
        except Exception as error:
            yield f"{kind}.{name}.{parameter} = {value!r} cannot be pickled: {error}. Parameters must be {_LITERALS}."
        else:
            if not same:
                yield f"{kind}.{name}.{parameter} = {value!r} is not equal to itself after pickling."


def _construction(kind: str, make: Callable[[], Any]) -> tuple[str, Callable[..., Any], dict[str, Any]]:
    """The name, the factory and the arguments that a component is made with."""
    made = make()
    recipe = recipe_of(made)
    if recipe is not None:
        factory = plugins.current().component(recipe.kind, recipe.name).factory
        return recipe.name, factory.make, dict(recipe.arguments)
    maker = type(made)
    if kind in ("strategies", "optimizers") or type(make()) is not maker:
        pytest.skip(
            "make returned a TensorFlow object, or one of a class that is made anew each time, which does not record "
            f"how it was made. Make it by its registered factory, ganlab.component({kind!r}, NAME)(...), to have its "
            "parameters checked."
        )
    return maker.__name__.lower(), maker, {k: described(v) for k, v in _arguments(maker, make).items()}


def _arguments(maker: type, make: Callable[[], Any]) -> dict[str, Any]:
    """The arguments that `make` passes to the constructor."""
    if maker.__init__ is object.__init__:  # type: ignore[misc]
        return {}
    constructor: Any = maker.__init__  # type: ignore[misc]
    calls: list[dict[str, Any]] = []

    @functools.wraps(constructor)
    def recording(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is maker:
            bound = inspect.signature(constructor).bind(self, *args, **kwargs).arguments
            calls.append(dict(list(bound.items())[1:]))
        constructor(self, *args, **kwargs)

    inherited = "__init__" not in vars(maker)
    maker.__init__ = recording  # type: ignore[misc]
    try:
        make()
    finally:
        if inherited:
            del maker.__init__  # type: ignore[misc]
        else:
            maker.__init__ = constructor  # type: ignore[misc]
    return calls[-1] if calls else {}


def _defaults(factory: Callable[..., Any]) -> dict[str, Any]:
    signature = inspect.signature(factory).parameters
    return {name: p.default for name, p in signature.items() if p.default is not inspect.Parameter.empty}


def _kit() -> dict[str, tuple[str, Callable[..., Any]]]:
    """The kit's parts that the file has beside the component, each with its kind, by the experiment's parameter."""
    return {
        "strategy": ("strategies", _one_device),
        "dataset": ("datasets", parts.Points),
        "architecture": ("architectures", _networks),
        "loss": ("losses", parts.Wasserstein),
        "critic_optimizer": ("optimizers", _descent),
        "generator_optimizer": ("optimizers", _descent),
    }


def _one_device() -> Any:
    return lab.strategy(0)


def _networks() -> parts.Networks:
    return parts.Networks(parts.critic)


def _descent() -> Any:
    return lab.sgd(0.01)


@contextlib.contextmanager
def _offered(kind: str, name: str, factory: Callable[..., Any]) -> Iterator[str]:
    """Context manager: a plugin offers this component and the kit's parts; yields the reason if it is rejected."""
    offers: dict[str, dict[str, Callable[..., Any]]] = {}
    for other, make in _kit().values():
        offers.setdefault(other, {})["conformance_kit"] = make
    offers.setdefault(kind, {})[name] = factory
    hooks = {f"ganlab_{k}": _hook(makes) for k, makes in offers.items()}
    before = plugins.current()
    offering = plugins.Plugins(components={k: v for k, v in before.components.items() if k != (kind, name)})
    offering.add(plugins.Plugin("conformance", "ganlab.testing", ""), lambda: types.SimpleNamespace(**hooks))
    plugins.use(offering)
    try:
        yield offering.rows[-1].reason.rstrip(".") if offering.rows[-1].status != "loaded" else ""
    finally:
        plugins.use(before)


def _hook(makes: dict[str, Callable[..., Any]]) -> Any:
    return hookimpl(lambda: makes)


def _experiment(component: Recipe) -> Recipe:
    arguments: dict[str, Any] = {part: Recipe(kind, "conformance_kit") for part, (kind, _) in _kit().items()}
    (part, *_) = [part for part, kind in PARTS.items() if kind == component.kind]
    arguments[part] = [component] if part in LISTS else component
    return Recipe("", "experiment", arguments)


def _read(text: str) -> Recipe:
    with scratch_folder("ganlab-conformance-") as folder:
        path = Path(folder) / "config.gin"
        path.write_text(text, encoding="utf-8")
        return load([path])


def _is(back: Any, value: Any) -> bool:
    """Whether a value was read back unchanged, components with the defaults that they were written with."""
    if isinstance(value, Recipe) and isinstance(back, Recipe):
        same = all(_is(back.arguments.get(name), argument) for name, argument in value.arguments.items())
        return value.selector == back.selector and same
    if isinstance(value, list | tuple) and type(back) is type(value):
        return len(back) == len(value) and all(map(_is, back, value))
    return type(back) is type(value) and bool(back == value)


def _named(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _inner(recipe: Recipe) -> list[Recipe]:
    values = list(recipe.arguments.values())
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [value for value in flat if isinstance(value, Recipe)]
