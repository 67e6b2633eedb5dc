"""Parses modules: their hashes, and which other modules they import."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
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

# An imported name, and whether it may be an attribute of a module rather than a module.
_Import = tuple[str, bool]


def is_library(name: str) -> bool:
    """Whether a module belongs to Python, ganlab's core or the libraries below it."""
    return name.partition(".")[0] in _LIBRARIES


def closure(roots: Iterable[str]) -> dict[str, str]:
    """Hashes modules and the modules that they import, as far as these belong to plugins or to the user's own code.

    Args:
        roots: Names of modules.

    Returns:
        Hashes by module name. Nothing is imported.
    """
    waiting, found = list(roots), dict[str, str]()
    own = {name.partition(".")[0] for name in waiting} | _plugin_packages()
    while waiting and len(found) < _MOST:
        name = waiting.pop()
        file = file_of(name) if name not in found else None
        if file is None:
            continue
        hashed, imports, dynamic = _parsed(file, _stamp(file), name, _is_package(file))
        found[name] = hashed
        wanted = [*_modules(imports), *(_whole_package(name) if dynamic else ())]
        waiting += [other for other in wanted if _counts(other, own)]
    return dict(sorted(found.items()))


def hash_of(name: str) -> str | None:
    """The hash of a module's source; None if the module or its file is missing."""
    file = file_of(name)
    return None if file is None else _parsed(file, _stamp(file), name, _is_package(file))[0]


def hash_of_file(file: Path) -> str | None:
    """The hash of a Python file, imported or not; None if it is missing, or too large for one."""
    if not os.path.isfile(file) or file.stat().st_size > _MOST_BYTES:
        return None
    return _parsed(file, _stamp(file), file.stem, False)[0]


def file_of(name: str) -> Path | None:
    """The file of a module, imported or not; None for a module without a file."""
    loaded = sys.modules.get(name)
    origin = getattr(loaded, "__file__", None) if loaded is not None else getattr(_spec(name), "origin", None)
    return Path(origin) if isinstance(origin, str) and os.path.isfile(origin) else None


def definitions(definition: Any) -> tuple[dict[str, str], list[str]]:
    """Hashes a class or function of a notebook or script, and the definitions that it names there.

    The rest of the notebook is left out, so that new cells do not change the hash of existing parts.

    Returns:
        Hashes by qualified name, and the modules that they name.
    """
    module = sys.modules.get(definition.__module__)
    names = vars(module) if module else {}
    waiting, found, imported = [definition], dict[str, str](), []
    while waiting:
        part = waiting.pop()
        key = f"{part.__module__}.{part.__qualname__}"
        if key in found:
            continue
        tree = _tree_of(part)
        mentioned = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else _names(part))
        constants = []
        for name in mentioned:
            value = names.get(name)
            if isinstance(value, (type, types.FunctionType)) and value.__module__ == part.__module__:
                waiting.append(value)
            elif isinstance(value, types.ModuleType):
                imported.append(value.__name__)
            elif isinstance(value, (type, types.FunctionType)):
                imported.append(value.__module__)
            elif isinstance(value, (str, bytes, int, float, complex, tuple)):
                constants.append((name, repr(value)))
        text = _canonical(tree) if tree else _bytecode(part)
        found[key] = digest(f"{text}{constants}".encode())
    return found, [name for name in imported if _counts(name, _plugin_packages())]


def _counts(name: str, own: set[str]) -> bool:
    top = name.partition(".")[0]
    if top in _LIBRARIES or top == "__main__":
        return False
    return top in own or _is_ones_own(top)


@lru_cache(maxsize=1024)
def _is_ones_own(top: str) -> bool:
    """Whether a package lies outside Python's own folders and those that pip installs into."""
    spec = _spec(top)
    places = [spec.origin, *(spec.submodule_search_locations or [])] if spec else []
    folders = [Path(place).parts for place in places if place and os.path.exists(place)]
    return bool(folders) and not any({"site-packages", "dist-packages"} & set(parts) for parts in folders)


def _plugin_packages() -> set[str]:
    current = plugins.current()
    modules = [current.loaded(row.name) for row in current.rows if row.status == "loaded"]
    return {str(getattr(module, "__name__", "")).partition(".")[0] for module in modules} - {"", *_LIBRARIES}


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """Finds a module's spec without importing its parents."""
    top, *rest = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
        for at in range(len(rest)):
            if spec is None or spec.submodule_search_locations is None:
                return None
            whole = ".".join([top, *rest[: at + 1]])
            spec = importlib.machinery.PathFinder.find_spec(whole, list(spec.submodule_search_locations))
    except (ImportError, ValueError, AttributeError, OSError):
        return None
    return spec


def _modules(imports: Iterable[_Import]) -> Iterator[str]:
    for name, attribute in imports:
        # `from package import name`: a module of the package, or an attribute of its __init__.
        if attribute and file_of(name) is None:
            yield name.rpartition(".")[0]
        else:
            yield name


def _whole_package(name: str) -> Iterator[str]:
    """Every module of a module's package, because it imports a name that is known only when the code runs."""
    top = name.partition(".")[0]
    spec = _spec(top)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).rglob("*.py"))[:_MOST]:
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join([top, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def _is_package(file: Path) -> bool:
    return file.stem == "__init__"


def _stamp(file: Path) -> tuple[int, int]:
    stat = file.stat()
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=2048)
def _parsed(file: Path, stamp: tuple[int, int], name: str, package: bool) -> tuple[str, tuple[_Import, ...], bool]:
    """The hash of a file, its imports, and whether it has imports that its text does not determine."""
    try:
        data = file.read_bytes()
    except OSError:
        return "unreadable", (), False
    try:
        if file.suffix != ".py" or len(data) > _MOST_BYTES:
            raise ValueError
        tree = ast.parse(data)
        text = _canonical(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return digest(data), (), False
    imports, dynamic = _imports(tree, name if package else name.rpartition(".")[0])
    return digest(text.encode(errors="backslashreplace")), tuple(imports), dynamic


def _imports(tree: ast.AST, package: str) -> tuple[list[_Import], bool]:
    found: list[_Import] = []
    dynamic = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, False) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node.module or "", node.level, package)
            found += [(f"{base}.{alias.name}" if base else alias.name, True) for alias in node.names]
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            named = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            if isinstance(named, str):
                dots = len(named) - len(named.lstrip("."))
                found.append((_absolute(named.lstrip("."), dots, package), False))
            else:
                dynamic = True
    return found, dynamic


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


def _functions(part: Any) -> list[types.FunctionType]:
    found = [part] if isinstance(part, types.FunctionType) else list(vars(part).values())
    found = [getattr(item, "__func__", getattr(item, "fget", item)) for item in found]
    return [item for item in found if isinstance(item, types.FunctionType)]


def _names(part: Any) -> set[str]:
    return {name for function in _functions(part) for code in _codes(function.__code__) for name in code.co_names}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _bytecode(part: Any) -> str:
    """A substitute for source that is unavailable, as for classes in a notebook: that of the part's functions."""
    texts = []
    for function in _functions(part):
        tree = _tree_of(function)
        if tree is not None:
            texts.append(f"{function.__name__}:{_canonical(tree)}")
            continue
        for code in _codes(function.__code__):
            constants = [item for item in code.co_consts if not isinstance(item, types.CodeType)]
            texts.append(f"{code.co_name}:{code.co_code.hex()}{constants}{code.co_names}")
    values = vars(part).items() if isinstance(part, type) else ()
    plain = [(name, value) for name, value in values if isinstance(value, (str, int, float, tuple))]
    attributes = [(name, value) for name, value in plain if not name.startswith("__")]
    bases = [base.__qualname__ for base in part.__bases__] if isinstance(part, type) else []
    return f"{sorted(texts)}{sorted(map(repr, attributes))}{bases}"
