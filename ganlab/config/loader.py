"""Reads experiment files into a recipe, and reports mistakes in one line, without TensorFlow."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from ganlab import composition
from ganlab.config import types, unused
from ganlab.config.files import shown
from ganlab.config.overrides import Override
from ganlab.config.parser import Binding, Macro, Reference, Statements, Unquoted, read, read_param
from ganlab.config.registry import EXPERIMENT, LISTS, Names, example, required, walk
from ganlab.config.resolver import Resolver, check_keys
from ganlab.config.spelling import default_lines, settled
from ganlab.errors import ConfigError, NotNamedError
from ganlab.interfaces import Loss
from ganlab.interfaces.loss import has_own
from ganlab.plugins import machines
from ganlab.plugins.annotations import UNKNOWN, annotation, broken_bound, takes_number
from ganlab.plugins.manager import current
from ganlab.plugins.recipes import Recipe


def load(
    sources: Sequence[str | Path],
    params: Sequence[str] = (),
    *,
    needs: Sequence[str] | None = None,
    only: Sequence[str] | None = None,
    objects: Mapping[str, Any] | None = None,
) -> Recipe:
    """Reads an experiment without importing TensorFlow or making any component.

    Args:
        sources: Experiment files, by path or by the name of a shipped one; later ones override earlier ones.
        params: Overrides of the files, for example `'experiment.steps=100'`. Quotes around text may be left out.
        needs: The parts that must be set, for something smaller than an experiment; None for all that one needs.
        only: The settings of the experiment to read from the files, whose other lines may then hold anything; None for
            all.
        objects: The values that were made in Python, as the function `objects` names them.

    Returns:
        The recipe `experiment`, whose arguments are plain values and recipes of components.
        `ganlab.composition.compose` makes the experiment from it.

    Raises:
        ConfigError: Something in the files or overrides is wrong, incomplete or without effect.
        PluginError: A plugin is broken or clashes with another, and `GANLAB_STRICT_PLUGINS` is set.
    """
    whole = _Read(sources, params, (), needs, only, objects)
    # Of files that are read in part, most lines have no effect.
    looked_at = [binding for binding in whole.bindings if only is None or binding.source >= len(sources)]
    unused.check(whole.files, looked_at, whole.resolver)
    return whole.recipe


@dataclass(frozen=True)
class Variant:
    """An experiment of a sweep, the settings that have an effect in it, and why others, or lines, have none."""

    recipe: Recipe
    used: Mapping[str, str]
    unused: Mapping[str, str]


def load_variant(sources: Sequence[str | Path], params: Sequence[str], settings: Mapping[str, str]) -> Variant:
    """Reads one of several experiments that are based on the same files, like `load`.

    A line that one of them does not use may be used by another, so a line without effect is reported in the result
    and is not an error.

    Args:
        sources: Experiment files.
        params: Overrides of the files, as `load` takes them.
        settings: Further overrides, name to value, both written as for `--param`.

    Raises:
        ConfigError: Something in the files, overrides or settings is wrong or incomplete.
        PluginError: A plugin is broken or clashes with another, and `GANLAB_STRICT_PLUGINS` is set.
    """
    whole = _Read(sources, params, [f"{name}={value}" for name, value in settings.items()])
    effective = {binding.source for binding in whole.resolver.used}
    numbered = dict(enumerate(settings, len(whole.files) - len(settings)))
    complaints = {
        numbered.get(binding.source, f"{binding.where}: {binding.name}"): f"{binding.where}: {reason}"
        for binding, reason in unused.without_effect(whole.files, whole.bindings, whole.resolver)
    }
    used = {name: settings[name] for number, name in numbered.items() if number in effective}
    return Variant(whole.recipe, used, complaints)


def arguments(kind: str, name: str, options: Sequence[str], option: str) -> dict[str, Any]:
    """Reads the arguments of a component outside experiments, a launcher or a search, from the command line.

    Args:
        kind: The component's kind.
        name: Its name.
        options: `'parameter=value'`, as typed. Quotes around text may be left out.
        option: The option's name for messages, for example `--launcher-option`.

    Returns:
        The values by parameter, of the types that the factory requires.

    Raises:
        ConfigError: There is no such parameter, or a value is not of its type.
        PluginError: There is no such component, or several plugins offer it.
    """
    component = current().component(kind, name)
    names = Names(current())
    statements = Statements()
    for text in options:
        where = text.origin if isinstance(text, Override) else f"{option} {text!r}"
        parameter, _, value = (part.strip() for part in text.partition("="))
        if not (parameter.isidentifier() and value):
            raise ConfigError(f"{where}: must have the form NAME=VALUE.")
        statements.files.append(None)
        statements.bindings.append(read_param(f"{kind}.{component.name}.{text}", where, 0, names.known))
    bindings = [_settle(binding, names) for binding in names.complete(statements)]
    resolver = Resolver(names, bindings, strict=True)
    for binding in bindings:
        _check_value(binding, resolver)
    return {binding.parameter: resolver.value(binding) for binding in bindings}


def takes_fractions(setting: str) -> bool | None:
    """Whether a setting may be a fractional number, according to its annotation.

    Args:
        setting: Its name, as on the left of a binding.

    Returns:
        None if that is unknown: for a macro, or without an annotation.

    Raises:
        ConfigError: There is no such component or parameter.
    """
    selector, _, parameter = setting.rpartition("/")[2].rpartition(".")
    if not selector:
        return None
    names = Names(current())
    (binding,) = names.complete(Statements([Binding((), selector, parameter, 0, setting, 0)]))
    hint = annotation(names.make(binding.selector), parameter)
    return None if hint is UNKNOWN else types.fits(0.5, hint)


class _Read:
    """Reads one experiment and checks everything except for lines without effect."""

    def __init__(
        self,
        sources: Sequence[str | Path],
        params: Sequence[str],
        settings: Sequence[str],
        needs: Sequence[str] | None = None,
        only: Sequence[str] | None = None,
        objects: Mapping[str, Any] | None = None,
    ) -> None:
        plugins = current()
        plugins.check()
        names = Names(plugins)
        statements, apart = settled(read(sources, params, names.known, settings), names)
        self.files = statements.files
        self.bindings = [
            _settle(binding, names)
            for binding in names.complete(statements)
            if only is None
            or binding.selector != EXPERIMENT
            or binding.parameter in only
            or binding.source >= len(sources)
        ]
        self.resolver = Resolver(names, self.bindings, strict=True, objects=objects, apart=apart)
        for binding in self.resolver.bindings.values():
            _check_value(binding, self.resolver)
        recipe = self.resolver.experiment()
        if needs is None:
            loss = _with_stubs(self.resolver.arguments["loss"].value, names) if "loss" in recipe.arguments else None
            without = "" if not isinstance(loss, Loss) or has_own(loss, "critic") else "critic_optimizer"
            needs = [*required(composition.parameters()), *composition.DEFAULTED]
            needs = [name for name in needs if name != without and (only is None or name in only)]
            if lines := [line for line in default_lines(self.bindings) if line.parameter in needs]:
                self.bindings = [*lines, *self.bindings]
                self.resolver = Resolver(names, self.bindings, strict=True, objects=objects, apart=apart)
                recipe = self.resolver.experiment()
        _check_machines(self.resolver)
        _check_required(recipe, names, statements, needs)
        _check_settings(recipe, self.resolver)
        lists = {part: list(recipe.arguments[part]) for part in LISTS if part in recipe.arguments}
        self.recipe = replace(recipe, arguments={**recipe.arguments, **lists})


def _settle(binding: Binding, names: Names) -> Binding:
    """Takes the text of a `--param` literally if the parameter takes text, because shells remove quotes."""
    if not binding.text or names.clash(binding.selector):
        return binding
    hint = annotation(names.make(binding.selector), binding.parameter) if binding.selector else UNKNOWN
    wants_text = hint is not UNKNOWN and (
        types.fits(binding.text, hint)
        or (get_origin(hint) is Literal and any(isinstance(choice, str) for choice in get_args(hint)))
    )
    if isinstance(binding.value, Unquoted):
        if wants_text:
            return replace(binding, value=binding.text)
        setting = f"{binding.where}: {binding.name} = {binding.text}"
        if binding.selector == EXPERIMENT and binding.parameter in composition.PARTS:
            raise ConfigError(f"{setting} {_part_problem(binding.parameter, binding.text, names)}")
        if hint is not UNKNOWN:
            raise ConfigError(f"{setting} {types.complaint(binding.text, binding.text, hint)}")
        raise ConfigError(f"{binding.where}: {binding.value.reason}")
    if wants_text and not walk(binding.value) and not types.fits(binding.value, hint):
        return replace(binding, value=binding.text)
    return binding


def _check_value(binding: Binding, resolver: Resolver) -> None:
    value = _without_macros(binding.value, binding.where, resolver, ())
    if not binding.selector or resolver.names.clash(binding.selector):
        return
    if any(isinstance(part, Macro) for part in walk(value)):  # only in Python, where it was taken
        return
    if binding.selector == EXPERIMENT and binding.parameter in composition.PARTS:
        problem = _part_problem(binding.parameter, value, resolver.names)
    else:
        problem = _type_problem(binding, value, resolver.names)
    if problem:
        meaning = f" (that is {value!r})" if value is not binding.value and value != binding.value else ""
        raise ConfigError(f"{binding.where}: {binding.name} = {binding.value!r}{meaning} {problem}")


def _check_machines(resolver: Resolver) -> None:
    """Refuses a machine that only a file of a run or a sweep names, and records those that the user names."""
    for binding in resolver.used:
        if not binding.selector or not isinstance(binding.value, (str, Macro)):
            continue
        if not machines.takes(resolver.names.make(binding.selector), binding.parameter):
            continue
        machine = str(resolver.value(binding))
        if machines.experiments_are_trusted and not binding.is_data:
            machines.name(machine)
        elif not machines.is_named(machine):
            raise NotNamedError(
                ["--param", f"{binding.name}={machine!r}"],
                f"{binding.where} names a machine, and one that only a folder names is connected to only if you name "
                f"it, too. Where there is no --param, set {machines.VARIABLE}={shlex.quote(machine)} in the "
                "environment.",
            )


def _type_problem(binding: Binding, value: Any, names: Names) -> str:
    make = names.make(binding.selector)
    default = names.parameters(binding.selector)[binding.parameter].default
    hint = annotation(make, binding.parameter)
    if (
        isinstance(value, Reference)
        and value.selector.startswith("schedules.")
        and takes_number(make, binding.parameter)
    ):
        return ""
    checked = _with_stubs(value, names)
    if types.fits(checked, hint) or (type(value) is type(default) and value == default):
        return broken_bound(make, binding.parameter, checked)
    return types.complaint(checked, repr(binding.value), hint)


def _part_problem(part: str, value: Any, names: Names) -> str:
    kind = composition.PARTS[part]
    if part in composition.MAPPINGS:
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            return f"must be a dict from names of networks, for example {example(names, part)}"
        several = composition.MAPPINGS[part] == "several"
        problems = (_components_problem(part, kind, item, names, several=several) for item in value.values())
        return next(filter(None, problems), "")
    if value is None and part in composition.OPTIONAL:
        return ""
    return _components_problem(part, kind, value, names, several=part in LISTS)


def _components_problem(part: str, kind: str, value: Any, names: Names, *, several: bool) -> str:
    if several:
        if isinstance(value, Reference):
            return f"must be a list. Write [{value!r}]."
        if not isinstance(value, (list, tuple)):
            named = _named(kind, value, names)
            remedy = f". Write [{named}]." if named else f", for example {example(names, part)}"
            return f"must be a list of {kind}{remedy}"
        return next((problem for item in value if (problem := _item_problem(kind, item, part, names))), "")
    if isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], Reference):
        return f"must be one component, not a list. Write {value[0]!r}."
    return _item_problem(kind, value, part, names)


def _item_problem(kind: str, item: Any, part: str, names: Names) -> str:
    if isinstance(item, Reference):
        other = item.selector.partition(".")[0]
        if other == kind:
            return ""
        return f"is one of the {other}, but must be one of the {kind}, for example {example(names, part)}"
    named = _named(kind, item, names)
    return (
        f"must be a component. Write {named}."
        if named
        else f"must be one of the {kind}, for example {example(names, part)}"
    )


def _named(kind: str, value: Any, names: Names) -> str:
    """The reference meant by a text that names a component; empty for any other text."""
    if not isinstance(value, str):
        return ""
    selector = f"{kind}.{value.removeprefix('@').removesuffix('()').removeprefix(f'{kind}.')}"
    meant = [selector] if names.known(selector) else names.plugins.known_as(selector)
    return f"@{meant[0]}()" if len(meant) == 1 and meant[0].startswith(f"{kind}.") else ""


def _without_macros(value: Any, where: str, resolver: Resolver, within: tuple[str, ...]) -> Any:
    if within:
        resolver.count(len(within), where)
    if isinstance(value, Macro) and not value.only_in_python:
        definition = resolver.macro(value.name, where)
        if value.name in within:
            raise ConfigError(f"{where}: the macro %{value.name} is defined by itself. Give it a value of its own.")
        return _without_macros(definition.value, definition.where, resolver, (*within, value.name))
    if isinstance(value, (list, tuple)):
        return type(value)(_without_macros(item, where, resolver, within) for item in value)
    if isinstance(value, dict):
        keys = check_keys([_without_macros(key, where, resolver, within) for key in value], where)
        return dict(zip(keys, [_without_macros(i, where, resolver, within) for i in value.values()], strict=True))
    return value


def _with_stubs(value: Any, names: Names) -> Any:
    """Replaces every component with an object of its type, for type checks."""
    if isinstance(value, Reference):
        return types.stub(names.make(value.selector))
    if isinstance(value, (list, tuple)):
        return type(value)(_with_stubs(item, names) for item in value)
    if isinstance(value, dict):
        return {key: _with_stubs(item, names) for key, item in value.items()}
    return value


def _check_required(recipe: Recipe, names: Names, statements: Statements, needs: Sequence[str]) -> None:
    missing = [name for name in needs if name not in recipe.arguments]
    if missing:
        files = [shown(path) for path in statements.files if path is not None]
        lines = "; ".join(example(names, part) for part in missing)
        raise ConfigError(
            f"{f'{files[-1]}: ' if files else ''}{EXPERIMENT} needs {', '.join(missing)}, which no line sets. "
            f"Add for example: {lines}"
        )


def _check_settings(recipe: Recipe, resolver: Resolver) -> None:
    for name, value in recipe.arguments.items():
        try:
            composition.check_settings({name: value})
        except ConfigError as error:
            raise ConfigError(f"{resolver.arguments[name].where}: {error}") from None
    composition.check_settings(recipe.arguments)  # those that exclude one another
