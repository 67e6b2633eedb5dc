"""Validates a plugin before any of it is used: a matching contract, known hooks, valid factories."""

from __future__ import annotations

import ast
import difflib
import importlib.machinery
import importlib.util
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pluggy

from ganlab.errors import PluginError, nearest
from ganlab.interfaces import hookspecs

DECLARATION = "GANLAB_CONTRACT"
# The attribute that @ganlab.hookimpl, a marker of pluggy's, leaves on a function.
_MARK = "ganlab_impl"


class OtherContractError(PluginError):
    """A plugin that declares another contract than this ganlab's."""


def check_source(path: Path | None) -> None:
    """Refuses a plugin's source that declares another contract, without executing it; one that is unknown passes.

    Names that such a plugin imports may not exist here, and the plugin would be reported as broken.
    """
    try:
        body = ast.parse(path.read_bytes()).body if path else []
    except (OSError, SyntaxError, ValueError):
        return
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == DECLARATION for target in targets):
            try:
                declared = ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except ValueError:  # computed, and known only after the import
                continue
            check_declared(declared)


def check_declared(declared: Any) -> None:
    """Refuses a declared contract whose plugins do not work here; None declares nothing."""
    ours = hookspecs.CONTRACT
    if declared is None or (declared in hookspecs.CONTRACTS and type(declared) is int):
        return
    if type(declared) is not int or declared < 1:
        raise PluginError(f"{DECLARATION} = {declared!r} must be a whole number of at least 1, such as {ours}")
    remedy = "Upgrade ganlab" if declared > ours else "Upgrade the plugin"
    other = "install the plugin's version" if declared > ours else "install the ganlab"
    raise OtherContractError(
        f"written for plugin contract {declared}, where this ganlab has contract {ours}. {remedy}, or {other} for "
        f"contract {ours if declared > ours else declared}"
    )


def source_of(module: str) -> Path | None:
    """The source file of a module, found without importing it or its parents; None if it is unknown."""
    first, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(first)
        for name in rest:
            assert spec is not None
            spec = importlib.machinery.PathFinder.find_spec(f"{spec.name}.{name}", spec.submodule_search_locations)
    except Exception:  # whatever is wrong, the import will report it
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


def check_hooks(probe: pluggy.PluginManager, loaded: Any) -> None:
    """Registers a plugin with a manager without others; refuses unknown hooks, and unknown arguments of hooks."""
    try:
        probe.register(loaded)
    except pluggy.PluginValidationError as error:
        raise PluginError(str(error).strip().rpartition("\n")[2]) from None  # the lines before it show the code
    try:
        probe.check_pending()
    except pluggy.PluginValidationError as error:
        hooks = _hooks()
        unknown = str(error).split("'")[1] if "'" in str(error) else ""
        raise PluginError(f"unknown hook {unknown!r}.{nearest(unknown, hooks)}") from None


def unmarked(loaded: Any) -> Iterator[str]:
    """Finds what a plugin's author meant as a hook but pluggy ignores, because it lacks `@ganlab.hookimpl`.

    These are functions named like a hook, the plugin's own functions with a similar name, and a plugin without hooks.

    Yields:
        A predicate about the plugin, in complete sentences.
    """
    hooks = _hooks()
    functions = {name: function for name in dir(loaded) if callable(function := _attribute(loaded, name))}
    marked = [name for name, function in functions.items() if getattr(function, _MARK, None) is not None]
    meant = []
    for name, function in functions.items():
        is_own = getattr(function, "__module__", None) == getattr(loaded, "__name__", type(loaded).__module__)
        near = name if name in hooks else _meant(name, hooks) if is_own and not isinstance(function, type) else ""
        if near and name not in marked:
            meant.append(name)
            called = "" if name == near else f" and call it {near!r}"
            yield (
                f"has a function {name!r} without @ganlab.hookimpl, which is never called. Put @ganlab.hookimpl above "
                f"it{called}{'' if name == near else ', or, if it is not a hook, give it another name'}."
            )
    if not marked and not meant:
        bare = [name for name in functions if f"ganlab_{name}" in hooks]
        hint = f" Is {bare[0]!r} meant to be 'ganlab_{bare[0]}'?" if bare else ""
        yield (
            f"has no hook, so it offers nothing.{hint} A hook is a function, for example 'ganlab_constraints', with "
            "@ganlab.hookimpl above it."
        )


def known_as(loaded: Any) -> Iterable[tuple[str, list[str]]]:
    """The components of a plugin with the names by which people also know them: its `GANLAB_KNOWN_AS`, where valid."""
    declared = _attribute(loaded, "GANLAB_KNOWN_AS")
    for selector, words in declared.items() if isinstance(declared, dict) else ():
        yield str(selector), [str(word) for word in words] if isinstance(words, (list, tuple)) else []


def _attribute(loaded: Any, name: str) -> Any:
    try:
        return getattr(loaded, name)
    except Exception:  # a property of an object
        return None


def _meant(name: str, hooks: Iterable[str]) -> str:
    """The hook whose name is nearest to a function's name; empty if none is similar."""
    tidied = name.lower().strip("_")
    if re.match(r"(?:ganlab|gan_lab|ganlabs)_?[a-z]", tidied):
        tidied = re.sub(r"^(?:ganlabs?|gan_lab)_?", "ganlab_", tidied)
        # Most of the name is the prefix: the rest must be similar, or be one of the hook's words.
        suffixes = {hook.removeprefix("ganlab_"): hook for hook in hooks}
        last = tidied.removeprefix("ganlab_")
        similar = difflib.get_close_matches(last, suffixes, n=1, cutoff=0.6)
        parts = [part for part in suffixes if len(last) > 3 and (last in part or part.rstrip("s") in last)]
        return suffixes[similar[0]] if similar else suffixes[parts[0]] if parts else ""
    similar = difflib.get_close_matches(tidied, hooks, n=1, cutoff=0.85)
    return similar[0] if similar else ""


def _hooks() -> list[str]:
    return [name for name in dir(hookspecs) if name.startswith("ganlab_")]


def offers(kind: str, implementation: pluggy.HookImpl) -> Iterable[tuple[str, Callable[..., Any]]]:
    """Yields the components that a hook offers, each name with its factory; refuses what files could not use."""
    offered = implementation.function()
    if not isinstance(offered, dict):
        raise PluginError(f"ganlab_{kind} returned {type(offered).__name__}; it must return a dict of name to factory")
    for name, factory in offered.items():
        if not (isinstance(name, str) and name.isidentifier()):
            raise PluginError(f"ganlab_{kind} offers the name {name!r}; a name must be a Python identifier")
        if not callable(factory):
            raise PluginError(f"ganlab_{kind} offers {name!r} as {factory!r}; it must be a class or a function")
        for parameter in inspect.signature(factory).parameters.values():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                raise PluginError(f"{kind}.{name} takes {parameter}, which would accept any typo; name its parameters")
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise PluginError(f"{kind}.{name} takes {parameter.name!r} by position only; files set it by name")
        yield name, factory
