"""Folders at addresses that fsspec knows: listed, read within bounds and written, with errors in one sentence."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ganlab.errors import ConfigError, MissingDependencyError, RunError
from ganlab.files import line

# Bytes and files that are read at a time, the files side by side.
_BATCH_BYTES, _BATCH_FILES, _PIECE = 64 << 20, 256, 8 << 20


def is_known(address: str) -> bool:
    """Whether fsspec knows an address's scheme."""
    scheme, mark, _ = address.partition("://")
    if not mark:
        return False
    try:
        from fsspec import get_filesystem_class
    except ImportError:
        raise MissingDependencyError(
            f"{line(address)} is an address, and fsspec is not installed: "
            "pip install -e '.[remote]' in ganlab's source tree"
        ) from None
    try:
        get_filesystem_class(scheme)
    except ValueError:
        return False
    except ImportError as error:
        raise MissingDependencyError(f"{line(address)} needs another package: {line(error)}") from None
    return True


class Remote:
    """A folder at an address."""

    def __init__(self, address: str) -> None:
        """Opens the file system; fsspec's own configuration has its credentials and endpoint."""
        from fsspec.core import url_to_fs

        self.address = re.sub(r"(?<![:/])/+$", "", address)
        try:
            self._system, root = url_to_fs(self.address)
        except Exception as error:
            raise ConfigError(f"{line(address)} cannot be opened: {_reason(error)}") from error
        self._root = str(root).rstrip("/")

    def below(self, name: str) -> Remote:
        """A folder in this one."""
        return Remote(f"{self.address}/{name}")

    def sizes(self) -> dict[str, int]:
        """The size of every file at or below this folder, by its path from here; empty if it does not exist.

        Pipes and devices, which a mirror in a folder may have, and links to them are left out.
        """
        with self._reporting("listed"):
            self._system.invalidate_cache()
            try:
                found = self._system.find(self._root, detail=True)
            except FileNotFoundError:
                return {}
            first = len(self._root) + 1
            return {
                path[first:]: int(fact["size"] or 0)
                for path, fact in found.items()
                if path[first:] and _is_file(path, fact)
            }

    def read(self, files: Sequence[tuple[str, int]]) -> Iterator[bytes]:
        """Yields the bytes of files, in order, many of which are read at a time."""
        batch: list[tuple[str, int]] = []
        for number, file in enumerate(files, 1):
            batch.append(file)
            if sum(size for _, size in batch) < _BATCH_BYTES and len(batch) < _BATCH_FILES and number < len(files):
                continue
            with self._reporting("read"):
                paths, ends = [self._at(name) for name, _ in batch], [size for _, size in batch]
                read = self._system.cat_ranges(paths, [0] * len(batch), ends, on_error="return")
                for data in read:
                    if isinstance(data, BaseException):
                        raise data
            yield from map(bytes, read)
            batch = []

    def stream(self, name: str, size: int) -> Iterator[bytes]:
        """Yields the first bytes of a large file, in pieces."""
        for start in range(0, size, _PIECE):
            with self._reporting("read"):
                data = self._system.cat_file(self._at(name), start=start, end=min(start + _PIECE, size))
            yield bytes(data)

    def write(self, name: str, data: bytes) -> None:
        """Writes a file; parts of it may be there if that fails."""
        path = self._at(name)
        with self._reporting("written"):
            if not self._system.async_impl:  # stores of objects have no folders
                self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._system.pipe_file(path, data)

    def remove(self, names: Sequence[str]) -> None:
        """Removes files, as far as that is possible: what is left takes room and nothing else."""
        for name in names:
            with contextlib.suppress(Exception):
                self._system.rm_file(self._at(name))

    def check_writable(self) -> None:
        """Writes a file of a few bytes and removes it."""
        self.write(".ganlab-probe", b"Written by ganlab to see whether it can.\n")
        self.remove([".ganlab-probe"])

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextlib.contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        """Context manager: turns the errors of any file system, which have nothing in common, into a RunError."""
        try:
            yield
        except Exception as error:
            raise RunError(f"{line(self.address)} cannot be {what}: {_reason(error)}") from error


def _is_file(path: str, fact: Mapping[str, Any]) -> bool:
    return fact.get("type") == "file" or (bool(fact.get("islink")) and os.path.isfile(path))


def _reason(error: BaseException) -> str:
    text = line(str(error).strip() or type(error).__name__)
    return f"{text[:300]}." if not text.endswith(".") else text[:300]
