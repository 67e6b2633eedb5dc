"""What is asked of a plugin before anything of it is used: a contract that fits, known hooks, sound factories."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pluggy

from ganlab import hookspecs
from ganlab.errors import PluginError, nearest

DECLARATION = "GANLAB_CONTRACT"


class OtherContractError(PluginError):
    """A plugin that says that it was written for another contract than this ganlab's."""


def check_source(path: Path | None) -> None:
    """Refuses a plugin's source that declares another contract, without executing it.

    Names that such a plugin imports may not exist here, which would be told as if the plugin were broken.

    Args:
        path: The module's file; one that is None or cannot be read is left to the import to tell.

    Raises:
        OtherContractError: It was written for another contract.
        PluginError: What it declares is no contract's number.
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
            except ValueError:  # computed: known after the import
                continue
            check_declared(declared)


def check_declared(declared: Any) -> None:
    """Refuses a declared contract that is not this ganlab's; None declares nothing.

    Raises:
        OtherContractError: The plugin was written for another contract.
        PluginError: This is no contract's number.
    """
    ours = hookspecs.CONTRACT
    if declared is None or (declared == ours and type(declared) is int):
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
    """The source file of a module, which is not imported (its parent packages are); None where that is not known."""
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # whatever is wrong, the import will tell
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


def check_hooks(probe: pluggy.PluginManager) -> None:
    """Refuses hooks that ganlab does not have.

    Args:
        probe: A manager with one plugin registered.

    Raises:
        PluginError: A hook is unknown; the message has the nearest that is known.
    """
    try:
        probe.check_pending()
    except pluggy.PluginValidationError as error:
        hooks = [name for name in dir(hookspecs) if name.startswith("ganlab_")]
        unknown = str(error).split("'")[1] if "'" in str(error) else ""
        raise PluginError(f"unknown hook {unknown!r}.{nearest(unknown, hooks)}") from None


def offers(kind: str, implementation: pluggy.HookImpl) -> Iterable[tuple[str, Callable[..., Any]]]:
    """What a component hook offers, each name with its factory.

    Raises:
        PluginError: It returned no dict, or one with a name or a factory that files could not use.
    """
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
