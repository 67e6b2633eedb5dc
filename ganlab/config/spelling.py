"""One name for a setting: overrides may name it as a file, a run, a comparison or a sweep's folder does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ganlab import composition
from ganlab.config.parser import Binding, Macro, Statements, read, read_param
from ganlab.config.registry import EXPERIMENT, Names, walk
from ganlab.config.resolver import Resolver
from ganlab.errors import ConfigError
from ganlab.plugins.manager import KINDS, current
from ganlab.support.names import meant


@dataclass(frozen=True)
class _Setting:
    """A setting of an experiment: how its files name it, how runs do, and the path of a use that is set apart for it.

    The two names differ where a file has a scope of its own; a component that several parts share is set apart if the
    setting of one of them is named.
    """

    written: Binding
    recorded: str
    apart: str = ""


def settled(statements: Statements, names: Names) -> tuple[Statements, list[str]]:
    """The statements with the overrides named as the files name their settings.

    Returns:
        The statements, and the paths of uses that need a scope of their own, for `Resolver`.

    Raises:
        ConfigError: A name means several settings.
    """
    unclear = [binding for binding in statements.bindings if binding.text and _unclear(binding, names)]
    if not unclear:
        return statements, []
    known = _Known([binding for binding in statements.bindings if binding not in unclear], names)
    found = {id(binding): known.setting(binding) for binding in unclear}
    bindings = [
        replace(binding, **{key: getattr(one.written, key) for key in ("scope", "selector", "parameter")})
        if (one := found.get(id(binding)))
        else binding
        for binding in statements.bindings
    ]
    return replace(statements, bindings=bindings), [one.apart for one in found.values() if one and one.apart]


def setting_name(sources: Sequence[str | Path], params: Sequence[str], name: str) -> str:
    """The name under which runs record a setting of an experiment, however it is given: `critic.adam.beta_1`, `weight`.

    Args:
        sources: Experiment files.
        params: Overrides of the files.
        name: The name. One that no part of the experiment has is returned as it is: another part may have it.

    Raises:
        ConfigError: It means several settings, or the files or the overrides have a mistake.
    """
    names = Names(current())
    statements = read(sources, params, names.known)
    binding = read_param(f"{name}=0", f"setting {name!r}", len(statements.files), names.known)
    known = _Known([one for one in statements.bindings if not (one.text and _unclear(one, names))], names)
    found = known.setting(binding) if _unclear(binding, names) else None
    return found.recorded if found else known.recorded(binding)


def _unclear(binding: Binding, names: Names) -> bool:
    """Whether a name is not that of an experiment's setting, or of a component's without a scope."""
    selector, parameter = binding.selector, binding.parameter
    if selector == EXPERIMENT or (selector in KINDS and names.known(f"{selector}.{parameter}")):
        return False
    return bool(binding.scope) or not names.known(selector) or len(names.matches(selector)) > 1


class _Known:
    """The settings of the experiment that some bindings make."""

    def __init__(self, bindings: Sequence[Binding], names: Names) -> None:
        self._names = names
        complete = names.complete(Statements(list(bindings)))
        resolver = Resolver(names, complete, strict=False)
        resolver.experiment()
        self._macros = {one.parameter for one in complete if not one.selector}
        self._macros |= {part.name for one in complete for part in walk(one.value) if isinstance(part, Macro)}
        self._settings: dict[str, _Setting] = {}
        self._spellings: dict[str, str] = {}
        self._apart: dict[str, str] = {}
        for parameter in composition.parameters():
            self._add(Binding((), EXPERIMENT, parameter, 0, "", 0), f"{EXPERIMENT}.{parameter}", "")
        self._spellings |= {part: f"{EXPERIMENT}.{part}" for part in composition.PARTS}
        self._uses: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for path, use in resolver.uses.items():
            self._uses.setdefault(use, []).append(path)
        for (selector, scope), ways in self._uses.items():
            for parameter in () if names.clash(selector) else names.parameters(selector):
                self._add_use(Binding(scope, selector, parameter, 0, "", 0), ways)

    def _add(self, written: Binding, recorded: str, apart: str) -> None:
        name = recorded if apart else written.name
        self._settings[name] = _Setting(written, recorded, apart)
        (self._apart if apart else self._spellings)[name] = name

    def _add_use(self, written: Binding, paths: Sequence[str]) -> None:
        plain = f"{written.selector}.{written.parameter}"
        if len(paths) == 1:
            recorded = f"{paths[0]}/{plain}"
            self._add(written, recorded if written.scope else plain, "")
            self._spellings[recorded] = written.name
            return
        self._add(written, written.name, "")
        for path in paths:
            self._add(replace(written, scope=(*written.scope, path)), f"{path}/{plain}", path)

    def setting(self, binding: Binding) -> _Setting | None:
        """The setting that a binding names; None if it names none of the experiment's.

        Raises:
            ConfigError: It may be several.
        """
        if not binding.selector and binding.parameter in self._macros:
            return None
        if len(matches := self._names.matches(binding.selector)) == 1:
            binding = replace(binding, selector=matches[0])
            if binding.name not in self._spellings and self._reaches(binding):
                return None
        found = meant(binding.name, self._spellings) or meant(binding.name, self._apart)
        if len(found) > 1:
            raise ConfigError(f"{binding.where}: {binding.name} may be {' or '.join(found)}: give one of them in full.")
        return self._settings[found[0]] if found else None

    def _reaches(self, binding: Binding) -> bool:
        scopes = [scope for selector, scope in self._uses if selector == binding.selector]
        return any(scope[: len(binding.scope)] == binding.scope for scope in scopes)

    def recorded(self, binding: Binding) -> str:
        """The name of a setting that the experiment does not have, or has without a scope, in full."""
        (complete,) = self._names.complete(Statements([binding]))
        return complete.name
