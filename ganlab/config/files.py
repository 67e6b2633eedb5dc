"""Finds experiment files by path, or by name among those that ganlab ships."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from pathlib import Path

from ganlab.errors import ConfigError, nearest
from ganlab.support.paths import local
from ganlab.support.terminal import line

_PACKAGE = Path(__file__).resolve().parent.parent
# Above this many shipped files, an error message counts those in folders.
_LISTED = 20


def shipped_folder() -> Path | None:
    """The folder of the shipped experiment files, in a wheel or in a source tree; None if there is none."""
    wheel, source = _PACKAGE / "gin_files", _PACKAGE.parent / "gin"
    if wheel.is_dir():
        return wheel
    # Beside an installed ganlab lies gin-config's own package `gin`, which contains no experiments.
    return source if source.is_dir() and not (source / "__init__.py").exists() else None


def shipped_gin_files() -> list[Path]:
    """Every shipped experiment file, sorted by name."""
    folder = shipped_folder()
    return sorted(folder.rglob("*.gin")) if folder else []


def find_gin_file(name: str | Path) -> Path:
    """The experiment file that a name stands for.

    Args:
        name: A path, or the name of a shipped file: `quickstart`, `quickstart.gin` and `gin/quickstart.gin` all name
            the same file.

    Returns:
        Its path, unchanged if `name` was a path.

    Raises:
        ConfigError: There is no such file.
    """
    path = _expanded(local(name))
    if _is_file(path):
        return path
    shipped = _shipped(str(name))
    if shipped is not None:
        return shipped
    if os.path.isdir(path):
        raise ConfigError(f"{name} is a folder; give the gin file itself.{_alternatives(path / path.name)}")
    if os.path.lexists(path):
        problem = "a broken link" if path.is_symlink() else "not a regular file"
        raise ConfigError(f"{name} is {problem}; give a gin file.")
    raise ConfigError(f"Gin file {str(name)!r} not found.{_alternatives(path)}")


def find_included(name: str, including: Path | None) -> Path:
    """The file that an `include` line means: beside the including file, then shipped, then in the working directory."""
    beside = including.parent / name if including is not None else Path(name)
    if _is_file(beside):
        return beside
    shipped = _shipped(name)
    if shipped is not None:
        return shipped
    if _is_file(Path(name)):
        return Path(name)
    raise ConfigError(
        f"include {name!r}: file not found beside {including}, among the shipped files or in the "
        f"working directory.{_alternatives(beside)}"
    )


def shown(path: Path) -> str:
    """The path for messages: relative to the working directory if it lies below it."""
    relative = os.path.relpath(path)
    return line(path if relative.startswith("..") else relative)


def _expanded(name: str | Path) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:  # "~nobody"
        return Path(name)


def _is_file(path: Path) -> bool:
    """Whether the file exists; False for a name that no file can have, for example one that is too long."""
    return os.path.isfile(path)


def _shipped(name: str) -> Path | None:
    folder = shipped_folder()
    if folder is None or Path(name).is_absolute():
        return None
    short = name.removeprefix("gin/")
    for candidate in (folder / short, folder / f"{short}.gin"):
        # A name must not lead out of the folder: '../secret' is a path, and was already looked up as one.
        if _is_file(candidate) and candidate.resolve().is_relative_to(folder.resolve()):
            return candidate
    return None


def _alternatives(path: Path) -> str:
    folder = shipped_folder()
    names = [file.relative_to(folder).as_posix() for file in shipped_gin_files()] if folder else []
    beside = sorted(file.name for file in path.parent.glob("*.gin")) if os.path.isdir(path.parent) else []
    near = difflib.get_close_matches(path.name, beside, n=1)
    if near:
        return f" Did you mean {str(path.parent / near[0])!r}?"
    if same := [name for name in names if Path(name).stem == path.name.removesuffix(".gin")]:
        return f" Did you mean {same[0].removesuffix('.gin')!r}?"
    listed = f" Shipped files: {', '.join(_folded(names, path.parent.name))}." if names else ""
    return nearest(path.name, [*names, *(name.removesuffix(".gin") for name in names)]) + listed


def _folded(names: list[str], opened: str) -> list[str]:
    """The names, those of a folder as one entry with their number if there are many; one folder may stay open."""
    if len(names) <= _LISTED:
        return names
    folders = Counter(name.partition("/")[0] for name in names if "/" in name and not name.startswith(f"{opened}/"))
    listed = [name for name in names if name.partition("/")[0] not in folders]
    return [*listed, *(f"{count} in {folder}/" for folder, count in folders.items())]
