"""One name for a setting: overrides may name it as a file, a run, a comparison or a sweep's folder does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ganlab import composition
from ganlab.config.parser import Binding, Macro, Reference, Statements, read, read_param
from ganlab.config.registry import EXPERIMENT, Names, walk
from ganlab.config.resolver import Resolver
from ganlab.plugins.manager import KINDS, current
from ganlab.support.names import one_meant


class _Setting(NamedTuple):
    """A setting as its files write it, as runs record it, and the path of a use that is set apart for it."""

    written: Binding
    recorded: str
    apart: str = ""


def settled(statements: Statements, names: Names) -> tuple[Statements, list[str]]:
    """The statements with overrides named as the files name settings, and the paths to set apart, for `Resolver`."""
    unclear = [binding for binding in statements.bindings if binding.text and _is_unclear(binding, names)]
    if not unclear:
        return statements, []
    known = _Known([binding for binding in statements.bindings if binding not in unclear], names)
    settings = {id(binding): one for binding in unclear if (one := known.setting(binding))}
    for number, binding in enumerate(statements.bindings):
        if one := settings.get(id(binding)):
            scope, selector, parameter = one.written.key
            statements.bindings[number] = replace(binding, scope=scope, selector=selector, parameter=parameter)
    return statements, [one.apart for one in settings.values() if one.apart]


def setting_name(sources: Sequence[str | Path], params: Sequence[str], name: str) -> str:
    """The name under which runs record a setting of an experiment, however it is given: `critic.adam.beta_1`, `weight`.

    Raises:
        ConfigError: It means several settings or none, or the files or the overrides have a mistake.
    """
    names = Names(current())
    statements = read(sources, params, names.known)
    binding = read_param(f"{name}=0", f"setting {name!r}", len(statements.files), names.known)
    known = _Known([one for one in statements.bindings if not (one.text and _is_unclear(one, names))], names)
    if _is_unclear(binding, names) and (setting := known.setting(binding)):
        return setting.recorded
    return names.complete(Statements([binding]))[0].name


def default_lines(bindings: Sequence[Binding]) -> list[Binding]:
    """Lines for the parts that no line sets and plugins have a default for."""
    given = {binding.parameter for binding in bindings if binding.selector == EXPERIMENT}
    names = {part: composition.default_of(part) for part in composition.DEFAULTED if part not in given}
    values = {
        part: Reference((), f"{composition.PARTS[part]}.{name}", called=True) for part, name in names.items() if name
    }
    return [
        Binding((), EXPERIMENT, part, value, f"the default of {EXPERIMENT}.{part}", 0, included=True)
        for part, value in values.items()
    ]


def _is_unclear(binding: Binding, names: Names) -> bool:
    """Whether a name is not that of an experiment's setting, or of a component's without a scope."""
    selector, parameter = binding.selector, binding.parameter
    if selector == EXPERIMENT or (selector in KINDS and names.known(f"{selector}.{parameter}")):
        return False
    return bool(binding.scope) or len(names.matches(selector)) != 1


class _Known:
    """The settings of the experiment that some bindings make."""

    def __init__(self, bindings: Sequence[Binding], names: Names) -> None:
        complete = names.complete(Statements([*default_lines(bindings), *bindings]))
        resolver = Resolver(names, complete, strict=False)
        resolver.experiment()
        self._names, self._uses = names, resolver.uses
        self._macros = {one.parameter for one in complete if not one.selector}
        self._macros |= {part.name for one in complete for part in walk(one.value) if isinstance(part, Macro)}
        # By each spelling: first those that files and runs have, then those that set a shared use apart.
        self._spelled: tuple[dict[str, _Setting], dict[str, _Setting]] = ({}, {})
        for parameter in composition.parameters():
            one = _Setting(Binding((), EXPERIMENT, parameter, 0, "", 0), f"{EXPERIMENT}.{parameter}")
            self._spelled[0].update(dict.fromkeys([one.recorded, *[parameter] * (parameter in composition.PARTS)], one))
        for use in set(resolver.uses.values()):
            if not names.clash(use[0]):
                self._add(*use, [path for path, other in resolver.uses.items() if other == use])

    def _add(self, selector: str, scope: tuple[str, ...], paths: Sequence[str]) -> None:
        """Adds the settings of a component that is used at these paths."""
        for parameter in self._names.parameters(selector):
            written, plain = Binding(scope, selector, parameter, 0, "", 0), f"{selector}.{parameter}"
            alone = f"{paths[0]}/{plain}" if scope and len(paths) == 1 else ""
            self._spelled[0][written.name] = one = _Setting(written, alone or written.name)
            for path in paths:
                own = replace(written, scope=(*scope, path))
                recorded = f"{path}/{plain}"
                self._spelled[len(paths) > 1][recorded] = one if len(paths) == 1 else _Setting(own, recorded, path)

    def setting(self, binding: Binding) -> _Setting | None:
        """The setting that a binding names; None if it names none, or several as gin does, by a scope they share."""
        if not binding.selector and binding.parameter in self._macros:
            return None
        if len(matches := self._names.matches(binding.selector)) == 1:
            binding = replace(binding, selector=matches[0])
            shared = [
                use
                for use in self._uses.values()
                if use == (matches[0], (*binding.scope, *use[1][len(binding.scope) :]))
            ]
            if shared and binding.name not in self._spelled[0]:
                return None
        for spelled in self._spelled:
            known = {key: one.written.name for key, one in spelled.items()}
            if name := one_meant(binding.name, known, f"{binding.where}: {binding.name}"):
                return next(one for one in spelled.values() if one.written.name == name)
        return None
