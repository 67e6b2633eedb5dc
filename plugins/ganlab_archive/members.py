"""Checks the names in an untrusted archive: how many, how long, how large the files are, and that none occurs twice."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from tarfile import TarInfo

from ganlab.errors import RunError
from ganlab_archive.tarring import quoted


@dataclass(frozen=True)
class Limits:
    """How much an archive may hold: a few megabytes may claim to be terabytes.

    Attributes:
        files: Number of files and folders, including folders that occur only within a name.
        bytes: Total size of all files.
        expansion: Bytes of all files per byte of the archive; None for no limit. Weights hardly shrink, logs shrink to
            a tenth.
        least: Total size of all files that any archive may hold, however small it is.
        depth: Levels of nested folders.
        name: Bytes of a name, including its folders.
    """

    files: int = 50_000
    bytes: int = 64_000_000_000
    expansion: int | None = 100
    least: int = 64_000_000
    depth: int = 32
    name: int = 1024

    def room(self, packed: int) -> int:
        """The total size that the files of an archive may have, given the size of the archive."""
        if self.expansion is None:
            return self.bytes
        return min(self.bytes, max(self.least, self.expansion * packed))


class Names:
    """The names of an archive so far; each is checked before anything is written."""

    def __init__(self, refused: str, limits: Limits, room: int) -> None:
        """Begins without names.

        Args:
            refused: What an error begins with, for example that the archive is not unpacked.
            limits: How much the archive may hold.
            room: The total size that its files may have.
        """
        self._refused, self._limits, self._room = refused, limits, room
        # The name as spelled, and whether it is a file's, by the form that file systems see which ignore case or
        # decompose letters.
        self._seen: dict[str, tuple[str, bool]] = {}
        self._bytes = 0

    def add(self, member: TarInfo) -> tuple[str, ...]:
        """Adds the next member.

        Returns:
            The parts of its name.

        Raises:
            RunError: The member must not be unpacked.
        """
        parts = self._parts(member.name)
        self._bytes += member.size
        if self._bytes > self._room:
            raise RunError(
                f"{self._refused}: its files are larger than {self._room} bytes. If you trust it, "
                "raise the limit: --max-size."
            )
        spelled, key = "", ""
        for number, part in enumerate(parts, 1):
            spelled, key = f"{spelled}/{part}", f"{key}/{alike(part)}"
            one = (spelled, number == len(parts) and not member.isdir())
            other = self._seen.setdefault(key, one)
            if other is not one and (one[1] or other != one):
                spelling = other[0].strip("/")
                also = "" if spelling == member.name.strip("/") else f" (as {quoted(spelling)})"
                raise RunError(f"{self._refused}: it holds {quoted(member.name)} twice{also}.")
        if len(self._seen) > self._limits.files:
            raise RunError(
                f"{self._refused}: it holds more than {self._limits.files} files and folders. If you "
                "trust it, raise the limit: --max-files."
            )
        return parts

    def _parts(self, name: str) -> tuple[str, ...]:
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        wrong = None
        if ".." in parts:
            wrong = "would be extracted outside of the folder"
        elif len(os.fsencode(name)) > self._limits.name or any(len(os.fsencode(part)) > 255 for part in parts):
            wrong = f"is longer than {self._limits.name} bytes, or a part of it than 255"
        elif len(parts) > self._limits.depth:
            wrong = f"lies more than {self._limits.depth} folders deep"
        elif any(ord(char) < 32 or ord(char) == 127 for char in name):
            wrong = "has control characters"
        if wrong:
            raise RunError(f"{self._refused}: {quoted(name)} {wrong}.")
        return parts


def alike(name: str) -> str:
    """A key equal for names that some file systems treat as one, because they ignore case or decompose letters."""
    return unicodedata.normalize("NFKC", name).casefold()
