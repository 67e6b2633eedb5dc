"""Reads the names and help texts of commands from their source code, without executing any of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click

from ganlab.plugins.validation import source_of

HOOK = "ganlab_register_commands"


def docstring(target: str) -> str:
    """The docstring of a function, `module:function`; empty if its source is unknown or has none."""
    module, _, name = target.partition(":")
    function = _functions(_parsed(source_of(module))).get(name)
    return (function and ast.get_docstring(function)) or ""


def added_by_hook(source: Path | None) -> dict[str, str] | None:
    """The commands that the hook `ganlab_register_commands` of a file adds: each name and its docstring.

    Args:
        source: The file; None if it is unknown.

    Returns:
        The commands; None if the hook adds any in a way that only executing it could show.
    """
    functions = _functions(_parsed(source))
    inside = list(ast.walk(functions[HOOK])) if HOOK in functions else []
    if not any(isinstance(node, ast.Name) and node.id == "cli" for node in inside):
        return {}  # nothing is added to a group that is not named
    commands: dict[str, str] = {}
    for node in inside:
        if isinstance(node, ast.FunctionDef) and (name := _command_name(node)):
            commands[name] = ast.get_docstring(node) or ""
    for call in inside:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_command":
            function = functions.get(getattr(call.args[0], "id", "")) if call.args else None
            if function is None:
                return None
            name = _constant([*call.args[1:], *_keyword(call, "name")]) or _command_name(function)
            if not name:
                return None
            commands[name] = ast.get_docstring(function) or ""
    return commands or None


def _parsed(source: Path | None) -> ast.Module:
    try:
        return ast.parse(source.read_bytes()) if source else ast.Module([], [])
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _functions(tree: ast.AST) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _command_name(function: ast.FunctionDef) -> str:
    """The name of the command that a decorator of click's makes of a function; empty if none does."""
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if getattr(called, "attr", getattr(called, "id", "")) in ("command", "group"):
            given = [*decorator.args[:1], *_keyword(decorator, "name")] if isinstance(decorator, ast.Call) else []
            return _constant(given) if given else _name_by_click(function.name)
    return ""


def _name_by_click(function: str) -> str:
    """The name that this version of click gives to the command of a function."""

    def stub() -> None: ...

    stub.__name__ = function
    return click.command()(stub).name or ""


def _keyword(call: ast.Call, name: str) -> Iterator[ast.expr]:
    return (each.value for each in call.keywords if each.arg == name)


def _constant(given: list[ast.expr]) -> str:
    value = getattr(given[0], "value", None) if given else None
    return value if isinstance(value, str) else ""
