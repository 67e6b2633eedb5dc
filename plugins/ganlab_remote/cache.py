"""The cache of runs read from mirrors: bounded in bytes, what was least recently used is removed first."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganlab.commands import from_bytes, in_bytes, say, warn
from ganlab.errors import ConfigError, RunError
from ganlab.files import as_name, line, locked_folder, read_inside, walk, write_text
from ganlab.runs import INFO, size_on_disk
from ganlab_remote.addresses import Remote
from ganlab_remote.manifests import (
    CHECKPOINTS,
    LARGEST,
    Files,
    Stored,
    decode,
    digest,
    encode,
    found_in,
    newest,
    part_path,
)

LIMIT = "GANLAB_REMOTE_CACHE"
_LIMIT = 10_000_000_000
# In each cached run: what of its mirror is here.
_HERE = ".mirror.json"
_REFRESH_SECONDS = 30.0


@dataclass(frozen=True)
class _Entry:
    """A run in the cache: its mirror's path below the address, what of it is here, and what is wanted."""

    mirror: str
    before: Files
    files: Files


def place() -> Path:
    """The cache's folder: `remote` in ganlab's."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("GANLAB_CACHE") or Path(cache) / "ganlab").expanduser().absolute() / "remote"


@contextlib.contextmanager
def cached(address: str, *, checkpoints: bool) -> Iterator[Path]:
    """Context manager: the runs at or below an address in a folder of this machine, brought up to date now and then."""
    given = os.environ.get(LIMIT, "").strip()
    limit = from_bytes(given) if given else _LIMIT
    if not limit:
        raise ConfigError(f"{LIMIT} = {given!r:.80} must be a size, for example 20GB.")
    remote = Remote(address)
    scheme, _, rest = address.partition("://")
    folder = place().joinpath(as_name(scheme), *(as_name(part) for part in rest.split("/") if part))
    done, said = threading.Event(), set()

    def refresh() -> None:
        problems = _refresh(remote, folder, limit, checkpoints)
        # A mirror may have been replaced while it was read.
        for problem in _refresh(remote, folder, limit, checkpoints) if problems else ():
            if problem not in said:
                said.add(problem)
                warn(problem)

    def follow() -> None:
        while not done.wait(_REFRESH_SECONDS):
            with contextlib.suppress(RunError, OSError):  # what is here stays
                refresh()

    try:
        refresh()
    except RunError:  # likewise, if no mirror could be read
        refresh()
    threading.Thread(target=follow, name="ganlab-remote-cache", daemon=True).start()
    say(f"{line(address)} is read from {line(folder)}.", err=True)
    try:
        with locked_folder(folder):
            yield folder
    finally:
        done.set()


def fetch(
    remote: Remote, sizes: Mapping[str, int], wanted: Sequence[tuple[str, Stored, Path]]
) -> tuple[dict[Path, str], set[str]]:
    """Fetches files, the parts of many of them side by side. Each is checked before it replaces an older one.

    Args:
        remote: The folder of the mirrors.
        sizes: The files that it lists, with their bytes: others are not opened.
        wanted: The mirror, the file there and its path here.

    Returns:
        Sentences on checkpoints with missing or damaged parts, by their folders, which are removed; and these parts.

    Raises:
        RunError: A part of another file is missing or damaged.
    """
    parts = [(mirror + part_path(part), size) for mirror, file, _ in wanted for part, size in file.sizes()]
    data = remote.read([part for part in parts if sizes.get(part[0]) == part[1]])
    lost: dict[Path, str] = {}
    bad: set[str] = set()
    for mirror, stored, target in wanted:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{secrets.token_hex(8)}")
        try:
            with aside.open("xb") as file:
                for part, size in stored.sizes():
                    name = mirror + part_path(part)
                    read = next(data) if sizes.get(name) == size else b""
                    if digest(read) != part:
                        bad.add(part)
                        run = line(f"{remote.address}/{mirror}".rstrip("/"))
                        problem = (
                            f"{run}/{part_path(part)} is missing, or its SHA-256 is not its name. Remove it if it is "
                            f"there, and send the run again from the machine that trained it: ganlab run --resume {run}"
                        )
                        folder = next((at for at in target.parents if at.parent.name == CHECKPOINTS), None)
                        if folder is None:
                            raise RunError(problem)
                        lost[folder] = f"Left out: the checkpoint {folder.name}. {problem}"
                    file.write(read)
            aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)
    for folder in lost:
        shutil.rmtree(folder, ignore_errors=True)
    return lost, bad


def _refresh(remote: Remote, folder: Path, limit: int, checkpoints: bool) -> list[str]:
    """Brings the cached runs up to date; returns what is wrong with some of them."""
    sizes, problems = remote.sizes(), []
    entries: dict[Path, _Entry] = {}
    for run, names in sorted(found_in(sizes).items()):
        try:
            manifest = newest(remote, names, sizes)
        except RunError as error:
            problems.append(f"Left out: {error}")
            continue
        if manifest is not None:
            before = _here(folder / run)
            light = {
                n: f for n, f in manifest.files.items() if n.partition("/")[0] != CHECKPOINTS or before.get(n) == f
            }
            entries[folder / run] = _Entry(f"{run}/" if run else "", before, manifest.files if checkpoints else light)
    _make_room(entries, limit)
    changed = {path: entry for path, entry in entries.items() if entry.before != entry.files}
    for path in entries.keys() - changed.keys():
        os.utime(path / _HERE)
    try:
        _update(remote, sizes, changed, problems)
    except RunError:  # one by one, so that a damaged mirror hides no other
        for path, entry in changed.items():
            try:
                _update(remote, sizes, {path: entry}, problems)
            except RunError as error:
                problems.append(f"Left out: {error}")
                del entries[path]
    if not entries:
        none = f"{line(remote.address)} has no run. Give the address that 'ganlab run --runs' mirrored to."
        raise RunError(problems[0].removeprefix("Left out: ") if problems else none)
    for path in _runs_in(folder):  # what the mirror no longer has, or not whole
        if path not in entries:
            _remove(path)
    return problems


def _update(remote: Remote, sizes: Mapping[str, int], changed: Mapping[Path, _Entry], problems: list[str]) -> None:
    """Fetches what cached runs lack, removes what their mirrors lack, and notes what is here then."""
    wanted = []
    for path, entry in changed.items():
        (path / _HERE).unlink(missing_ok=True)
        wanted += [(entry.mirror, file, path / n) for n, file in entry.files.items() if entry.before.get(n) != file]
    lost, _ = fetch(remote, sizes, wanted)
    problems += lost.values()
    for path, entry in changed.items():
        here = {n: file for n, file in entry.files.items() if lost.keys().isdisjoint((path / n).parents)}
        for at, _, names in walk(path):
            for file in (Path(at, name) for name in names):
                if file.relative_to(path).as_posix() not in here:
                    file.unlink(missing_ok=True)
        write_text(path / _HERE, encode(0, "", here)[1].decode())


def _here(folder: Path) -> Files:
    """The files of a cached run that are here; none if that was not noted, because a process was killed."""
    try:
        data = read_inside(folder, _HERE, most=LARGEST)
        manifest = decode(f"mirror/00000000-{digest(data)}.json", data)
    except (OSError, RunError):
        return {}
    return manifest.files if manifest else {}


def _make_room(entries: dict[Path, _Entry], limit: int) -> None:
    """Removes the least recently used runs until what is wanted fits."""
    wanted = sum(file.size for entry in entries.values() for file in entry.files.values())
    if wanted > limit:
        raise RunError(
            f"The runs to read have {in_bytes(wanted)}, and the cache may have {in_bytes(limit)}. Name fewer of them, "
            f"or raise the limit: {LIMIT}={in_bytes(2 * wanted).replace(' ', '')}"
        )
    others = {path: size_on_disk(path) for path in _runs_in(place()) if path not in entries}
    for path in sorted(others, key=_used_at):
        if wanted + sum(others.values()) <= limit:
            break
        if not _in_use(path):
            _remove(path)
            del others[path]


def _in_use(path: Path) -> bool:
    """Whether a command reads a folder that holds the run."""
    for folder in (path, *path.parents[: -len(place().parents)]):
        with locked_folder(folder) as free:
            if not free:
                return True
    return False


def _remove(path: Path) -> None:
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with contextlib.suppress(OSError):
        path.rename(aside)  # at once, so that half a run is not mistaken for a run
    shutil.rmtree(aside, ignore_errors=True)


def _runs_in(folder: Path) -> Iterator[Path]:
    for at, below, files in walk(folder):
        if _HERE in files or INFO in files:
            yield Path(at)
            below.clear()


def _used_at(path: Path) -> float:
    try:
        return (path / _HERE).lstat().st_mtime
    except OSError:
        return 0.0
