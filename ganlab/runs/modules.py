"""Hashes modules after parsing, so that comments, layout and docstrings do not count, and finds what they import."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from ganlab.plugins import manager as plugins
from ganlab.support.hashing import digest

# Packages with a version of their own, which determines their modules.
_LIBRARIES = {*sys.stdlib_module_names, "ganlab", "gin", "keras", "numpy", "pluggy", "pytest", "tensorflow"} - {
    "__main__"
}
_MOST = 1000  # number of modules of a part
_MOST_BYTES = 1 << 22  # size of a file that is parsed

# Stands for every module of a package, which a module of it imports by a name that is known only when the code runs.
_ANY = ".*"


def is_library(name: str) -> bool:
    """Whether a module belongs to Python, ganlab's core or the libraries below it."""
    return name.partition(".")[0] in _LIBRARIES


def closure(roots: Iterable[str], imported: Iterable[str] = ()) -> dict[str, str]:
    """Hashes modules and the modules that they import, as far as these belong to plugins or to the user's own code.

    Args:
        roots: Names of modules.
        imported: Names of modules that count as imported by them.

    Returns:
        Hashes by module name. Nothing is imported.
    """
    own, hashes = {name.partition(".")[0] for name in roots} | _plugin_packages(), dict[str, str]()
    waiting = [*imported, *roots]
    while waiting and len(hashes) < _MOST:
        name = waiting.pop()
        if name.endswith(_ANY):
            waiting += _whole_package(name.removesuffix(_ANY))
        elif name not in hashes and (file := file_of(name)) is not None and _counts(name, file, own):
            hashes[name], imports = _parsed(file, _stamp(file), name)
            # `from package import name`: a module of the package, or an attribute of its __init__.
            waiting += [at if at.endswith(_ANY) or file_of(at) else at.rpartition(".")[0] for at in imports]
    return dict(sorted(hashes.items()))


def hash_of(name: str) -> str | None:
    """The hash of a module's source; None if the module or its file is missing."""
    file = file_of(name)
    return None if file is None else _parsed(file, _stamp(file), name)[0]


def hash_of_file(file: Path) -> str | None:
    """The hash of a Python file, imported or not; None if it is missing, or too large for one."""
    if not os.path.isfile(file) or file.stat().st_size > _MOST_BYTES:
        return None
    return _parsed(file, _stamp(file), file.stem)[0]


def file_of(name: str) -> Path | None:
    """The file of a module, imported or not; None for a module without a file."""
    if (loaded := sys.modules.get(name)) is not None:
        origin = getattr(loaded, "__file__", None)
    else:
        origin = getattr(_spec(name), "origin", None)
    return Path(origin) if isinstance(origin, str) and os.path.isfile(origin) else None


def definitions(definition: Any) -> tuple[dict[str, str], list[str]]:
    """Hashes a class or function of a notebook or script, and the definitions that it names there.

    The rest of the notebook is left out, so that new cells do not change the hash of existing parts.

    Returns:
        Hashes by qualified name, and the modules that they name.
    """
    names = vars(sys.modules[definition.__module__])
    waiting, hashes, imported = [definition], dict[str, str](), []
    while waiting:
        part = waiting.pop()
        key = f"{part.__module__}.{part.__qualname__}"
        if key in hashes:
            continue
        mentioned, text = _source(part)
        constants = []
        for name in sorted(mentioned):
            value = names.get(name)
            if isinstance(value, (type, types.FunctionType)) and value.__module__ == part.__module__:
                waiting.append(value)
            elif isinstance(value, types.ModuleType):
                imported.append(value.__name__)
            elif isinstance(value, (type, types.FunctionType)):
                imported.append(value.__module__)
            elif isinstance(value, (str, bytes, int, float, complex, tuple)):
                constants.append((name, repr(value)))
        hashes[key] = digest(f"{text}{constants}".encode())
    return hashes, imported


def _counts(name: str, file: Path, own: set[str]) -> bool:
    """Whether a module is of these packages, or the user's own: outside the folders that pip installs into."""
    top = name.partition(".")[0]
    return top not in _LIBRARIES and (top in own or not {"site-packages", "dist-packages"} & set(file.parts))


def _plugin_packages() -> set[str]:
    current = plugins.current()
    modules = [current.loaded(row.name) for row in current.rows if row.status == "loaded"]
    return {str(getattr(module, "__name__", "")).partition(".")[0] for module in modules} - {""}


def _spec(name: str) -> Any:
    """Finds a module's spec without importing its parents."""
    top, *below = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
        if not below or spec is None:
            return spec
        places = [os.path.join(place, *below[:-1]) for place in spec.submodule_search_locations or ()]
        return PathFinder.find_spec(name, places)
    except (ImportError, ValueError, AttributeError, OSError):
        return None


def _whole_package(top: str) -> Iterator[str]:
    for folder in getattr(_spec(top), "submodule_search_locations", None) or ():
        for path in sorted(Path(folder).rglob("*.py"))[:_MOST]:
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join([top, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def _stamp(file: Path) -> tuple[int, int]:
    stat = file.stat()
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=2048)
def _parsed(file: Path, stamp: tuple[int, int], name: str) -> tuple[str, tuple[str, ...]]:
    """The hash of a file, and what it imports, by names that may be those of attributes of modules."""
    try:
        data = file.read_bytes()
    except OSError:
        return "unreadable", ()
    try:
        if file.suffix != ".py" or len(data) > _MOST_BYTES:
            raise ValueError
        tree = ast.parse(data)
        text = _canonical(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return digest(data), ()
    package = name if file.stem == "__init__" else name.rpartition(".")[0]
    return digest(text.encode(errors="backslashreplace")), tuple(_imports(tree, package))


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node.module or "", node.level, package)
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            named = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            if isinstance(named, str):
                yield _absolute(named.lstrip("."), len(named) - len(named.lstrip(".")), package)
            else:
                yield package.partition(".")[0] + _ANY


def _absolute(name: str, level: int, package: str) -> str:
    parts = package.split(".")
    above = ".".join(parts[: len(parts) - level + 1]) if level else ""
    return ".".join(part for part in (above, name) if part)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "id", "") or getattr(node.func, "attr", "")


def _canonical(node: Any) -> str:
    """A tree as text, equal in every version of Python: without empty fields, positions and docstrings."""
    if isinstance(node, list):
        return f"[{','.join(map(_canonical, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = []
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            value = value[1:] if _is_docstring(value) else value
        if value not in (None, []) and name not in ("ctx", "kind", "type_comment", "type_ignores"):
            fields.append(f"{name}={_canonical(value)}")
    return f"{type(node).__name__}({','.join(fields)})"


def _is_docstring(body: list[ast.stmt]) -> bool:
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    return isinstance(first, ast.Constant) and isinstance(first.value, str)


def _tree_of(part: Any) -> ast.AST | None:
    """The parsed source of a class or function; None if Python cannot find the source."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(part)))
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):
        return None


def _source(part: Any) -> tuple[set[str], str]:
    """The names that a class or function mentions, and a text of it.

    Python does not find the source of a class in a notebook: its methods, values and bases stand for it, and where not
    even their source is found, as of what was typed at a prompt, their compiled code.
    """
    if (whole := _tree_of(part)) is not None:
        return _names(whole), _canonical(whole)
    values = vars(part) if isinstance(part, type) else {part.__name__: part}
    functions = [getattr(item, "__func__", getattr(item, "fget", item)) for item in values.values()]
    names, texts = set[str](), []
    for function in (item for item in functions if isinstance(item, types.FunctionType)):
        tree = _tree_of(function)
        names |= _names(tree) if tree else {name for code in _codes(function.__code__) for name in code.co_names}
        texts.append(f"{function.__name__}:{_canonical(tree) if tree else _compiled(function.__code__)}")
    plain = [item for item in values.items() if isinstance(item[1], (str, int, float, tuple)) and item[0][:2] != "__"]
    bases = [base.__qualname__ for base in part.__bases__] if isinstance(part, type) else []
    return names, f"{sorted(texts)}{sorted(map(repr, plain))}{bases}"


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _compiled(code: types.CodeType) -> str:
    constants = [item for item in code.co_consts if not isinstance(item, types.CodeType)]
    inner = "".join(map(_compiled, (item for item in code.co_consts if isinstance(item, types.CodeType))))
    return f"{code.co_name}:{code.co_code.hex()}{constants}{code.co_names}{inner}"
