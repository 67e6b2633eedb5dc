"""Manifests: each names the files of a run as they were at one time, and the parts that their bytes are in.

A mirror is a folder with two folders. `content` has parts of files, each under the SHA-256 of its bytes. `mirror` has
manifests, each under its number and the SHA-256 of its own bytes. A manifest is written after all parts that it names,
and nothing is ever overwritten: a reader takes the newest manifest that is whole, so it finds the state before a write
or the one after it, on file systems without atomic writes, too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.files import is_name, line, schema
from ganlab_remote.addresses import Remote

PART = 8 << 20
LARGEST = 64 << 20  # of a manifest: of a million files
CHECKPOINTS = "checkpoints"
_NAME = re.compile(r"(?:(?P<run>.+)/)?mirror/(?P<number>[0-9]{8})-(?P<digest>[0-9a-f]{64})\.json", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_DEEPEST, _MOST_FILES, _TERABYTES, _MOST_COPIES = 16, 1_000_000, 1 << 44, 32


class DamagedError(RunError):
    """A file of a mirror is missing, or is not what it should be; `run` is the folder for the run here."""

    def __init__(self, sentence: str, run: Path) -> None:
        super().__init__(sentence)
        self.run = run


@dataclass(frozen=True)
class Stored:
    """A file in a mirror."""

    size: int
    parts: tuple[str, ...]

    def sizes(self) -> list[tuple[str, int]]:
        """Each part, and its bytes."""
        return [(part, min(PART, self.size - PART * number)) for number, part in enumerate(self.parts)]


Files = Mapping[str, Stored]


@dataclass(frozen=True)
class Manifest:
    """The state of a run in its mirror."""

    number: int
    digest: str
    files: Files

    @property
    def name(self) -> str:
        """Its path in the mirror."""
        return f"mirror/{self.number:08d}-{self.digest}.json"

    def parts(self) -> dict[str, int]:
        """The bytes of each part that it names."""
        return {part: size for file in self.files.values() for part, size in file.sizes()}


def digest(data: bytes) -> str:
    """The SHA-256 that names a part, or is in the name of a manifest."""
    return hashlib.sha256(data).hexdigest()


def part_path(part: str) -> str:
    """The path of a part in a mirror."""
    return f"content/{part}"


def number_of(name: str) -> int:
    """The number in a manifest's path in its mirror."""
    return int(name.removeprefix("mirror/").partition("-")[0])


def encode(number: int, writer: str, files: Files) -> tuple[Manifest, bytes]:
    """A new manifest and its bytes, which differ from those of another writer."""
    listed = {name: {"size": file.size, "sha256": list(file.parts)} for name, file in sorted(files.items())}
    data = json.dumps({"format": 1, "part": PART, "writer": writer, "files": listed}, indent=1).encode()
    return Manifest(number, digest(data), files), data


def found_in(names: Iterable[str]) -> dict[str, list[str]]:
    """The paths of manifests in a listing, newest first, by the path of their run, empty for the listed folder itself.

    Paths that could not be a run's here are left out.
    """
    by_run: dict[str, list[str]] = {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match and (match["run"] is None or _is_path(match["run"])):
            by_run.setdefault(match["run"] or "", []).append(name)
    # A run has no runs in it.
    return {run: sorted(found, reverse=True) for run, found in by_run.items() if by_run.keys().isdisjoint(_above(run))}


def _above(run: str) -> set[str]:
    return {"", *(run[:at] for at, letter in enumerate(run) if letter == "/")} - {run}


def newest(remote: Remote, candidates: Sequence[str], sizes: Mapping[str, int]) -> Manifest | None:
    """Reads the newest manifest that is whole; None if there is none."""
    for name in candidates:
        if 0 < sizes[name] <= LARGEST and (manifest := decode(name, next(remote.read([(name, sizes[name])])))):
            return manifest
    return None


def decode(name: str, data: bytes) -> Manifest | None:
    """The manifest in a file's bytes; None if they are not those that its name promises."""
    match = _NAME.fullmatch(name)
    assert match is not None
    if digest(data) != match["digest"]:
        return None
    try:
        content = json.loads(data)
        _SCHEMA.check(content)
        files = {name: Stored(file["size"], tuple(file["sha256"])) for name, file in content["files"].items()}
        _check(files)
    except (ValueError, RecursionError) as error:
        sentence = f"{line(name)} is not a manifest of ganlab: {line(error):.300}. Mirror the run again."
        raise DamagedError(sentence, Path()) from None
    return Manifest(int(match["number"]), match["digest"], files)


def _check(files: Files) -> None:
    if len(files) > _MOST_FILES:
        raise ValueError(f"it has more than {_MOST_FILES} files")
    total = sum(file.size for file in files.values())
    if total > _TERABYTES:
        raise ValueError(f"its files have more than {_TERABYTES} bytes")
    folders = {name[:at] for name in files for at, letter in enumerate(name) if letter == "/"}
    for name, file in files.items():
        if name in folders:
            raise ValueError(f"{name!r:.80} is a file and a folder")
        if len(file.parts) != -(-file.size // PART):
            raise ValueError(f"{name!r:.80} has {len(file.parts)} parts, which does not fit its {file.size} bytes")
    stored = sum(Manifest(0, "", files).parts().values())
    if total > _MOST_COPIES * (stored + PART):  # a small mirror is not to fill a disk
        raise ValueError(f"its files have {total} bytes, made of {stored}: more than {_MOST_COPIES} copies of each")


def _is_path(name: Any) -> bool:
    """Whether a text is the path of a file below a folder: no part is hidden or leads out of it."""
    parts = str(name).split("/")
    return len(parts) <= _DEEPEST and all(map(is_name, parts))


_SHA = schema.Rule("a SHA-256", lambda value: isinstance(value, str) and bool(_DIGEST.fullmatch(value)))
_FILE = schema.fields({"size": schema.whole(0, 1 << 44), "sha256": schema.items(_SHA)})
_SCHEMA = schema.fields(
    {
        "format": schema.Rule("1: update ganlab", lambda value: value == 1),
        "part": schema.Rule(str(PART), lambda value: value == PART),
        "writer": schema.WORD,
        "files": schema.table(_FILE, names=_is_path),
    }
)
