"""The cache of runs read from mirrors: bounded in bytes, what was least recently used is removed first."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import shutil
import threading
import time
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
    DamagedError,
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
_REFRESH_SECONDS, _WAIT_SECONDS = 30.0, 0.2


@dataclass(frozen=True)
class _Entry:
    """A run in the cache: its mirror's path below the address, what of it is here, and what is wanted."""

    mirror: str
    before: Files
    files: Files


@dataclass(frozen=True)
class Wanted:
    """A file to fetch: the path of its mirror below the address, its name in the run, its parts, the run's folder."""

    mirror: str
    name: str
    file: Stored
    run: Path


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
    known: dict[str, str] = {}

    def refresh() -> None:
        with waiting_for(place()):  # other processes, whose unfinished files are hidden ones in it
            update()

    def update() -> None:
        try:
            problems = _refresh(remote, folder, limit, checkpoints, known, strict=True)
        except RunError:  # a mirror may have been replaced while it was read
            problems = _refresh(remote, folder, limit, checkpoints, known, strict=False)
        for problem in problems:
            if problem not in said:
                said.add(problem)
                warn(problem)

    def follow() -> None:
        while not done.wait(_REFRESH_SECONDS):
            with contextlib.suppress(RunError, OSError):  # what is here stays
                refresh()

    refresh()
    threading.Thread(target=follow, name="ganlab-remote-cache", daemon=True).start()
    say(f"{line(address)} is read from {line(folder)}.", err=True)
    try:
        with waiting_for(folder, shared=True):  # for who asks whether it is in use
            yield folder
    finally:
        done.set()


@contextlib.contextmanager
def waiting_for(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Context manager: makes a folder, and locks it as soon as no other process holds it, or holds it alone."""
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        with locked_folder(folder, shared=shared) as ours:
            if ours:
                yield
                return
        time.sleep(_WAIT_SECONDS)


def fetch(
    remote: Remote, sizes: Mapping[str, int], wanted: Sequence[Wanted], known: dict[str, str], *, strict: bool = False
) -> dict[Path, str]:
    """Fetches files, the parts of many of them side by side. Each is checked before it replaces an older one.

    Args:
        remote: The folder of the mirrors.
        sizes: The files that it lists, with their bytes: others are not opened.
        wanted: The files.
        known: Sentences on missing and damaged parts by their path there. What is found is added.
        strict: Whether to raise for any that is not known.

    Returns:
        The folders of checkpoints with such parts, which are removed, each with a sentence.

    Raises:
        DamagedError: A part of another file is missing or damaged.
    """
    parts = {one.mirror + part_path(part): size for one in wanted for part, size in one.file.sizes()}
    if any(path not in known and sizes.get(path) != size for path, size in parts.items()):
        sizes = remote.sizes()  # it may have been written after the manifest was listed
    lost: dict[Path, str] = {}

    def damaged(one: Wanted, path: str) -> None:
        if path not in known:
            run = line(shlex.quote(f"{remote.address}/{one.mirror}".rstrip("/")))
            sentence = (
                f"{line(f'{remote.address}/{path}')} is missing, or its SHA-256 is not its name. Remove it if it is "
                f"there, and send the run again from the machine that trained it: ganlab run --resume {run}"
            )
            if strict:
                raise DamagedError(sentence, one.run)
            known[path] = sentence
        names = one.name.split("/")
        if names[0] != CHECKPOINTS or len(names) < 3:
            raise DamagedError(known[path], one.run)
        lost[one.run / names[0] / names[1]] = f"Left out: the checkpoint {names[1]}. {known[path]}"

    for one in wanted:
        for part, size in one.file.sizes():
            path = one.mirror + part_path(part)
            if path in known or sizes.get(path) != size:
                damaged(one, path)
    whole = [one for one in wanted if lost.keys().isdisjoint((one.run / one.name).parents)]
    data = remote.read([(one.mirror + part_path(part), size) for one in whole for part, size in one.file.sizes()])
    try:
        for one in whole:
            target = one.run / one.name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG):
                    raise
                raise DamagedError(f"{line(one.mirror + one.name)}: {error.strerror}", one.run) from None
            aside = target.with_name(f".{secrets.token_hex(8)}")
            try:
                with aside.open("xb") as file:
                    for part in one.file.parts:
                        read = next(data)
                        if digest(read) != part:
                            damaged(one, one.mirror + part_path(part))
                        file.write(read)
                if lost.keys().isdisjoint(target.parents):
                    aside.replace(target)
            finally:
                aside.unlink(missing_ok=True)
    finally:
        for folder in lost:
            shutil.rmtree(folder, ignore_errors=True)
    return lost


def _refresh(
    remote: Remote, folder: Path, limit: int, checkpoints: bool, known: dict[str, str], *, strict: bool
) -> list[str]:
    """Brings the cached runs up to date; returns what is wrong with some, or if strict raises what is not known."""
    sizes, problems = remote.sizes(), []
    entries: dict[Path, _Entry] = {}
    for run, names in sorted(found_in(sizes).items()):
        try:
            manifest = newest(remote, names, sizes)
        except DamagedError as error:
            if strict and names[0] not in known:
                raise
            known[names[0]] = str(error)
            problems.append(f"Left out: {error}")
            continue
        if manifest is not None:
            before = _here(folder / run)
            light = {
                n: f for n, f in manifest.files.items() if n.partition("/")[0] != CHECKPOINTS or before.get(n) == f
            }
            entries[folder / run] = _Entry(f"{run}/" if run else "", before, manifest.files if checkpoints else light)
    if not entries and not problems:
        raise RunError(f"{line(remote.address)} has no run. Give the address that 'ganlab run --runs' mirrored to.")
    for path in _runs_in(folder):  # what the mirror has no more
        if path not in entries:
            _remove(path)
    _make_room(entries, limit)
    changed = {path: entry for path, entry in entries.items() if entry.before != entry.files}
    for path in entries.keys() - changed.keys():
        os.utime(path / _HERE)
    while changed:
        try:
            problems += _update(remote, sizes, changed, known, strict)
            break
        except DamagedError as error:  # a damaged mirror hides no other
            if error.run not in changed or (strict and str(error) not in known.values()):
                raise
            problems.append(f"Left out: {error}")
            _remove(error.run)
            del changed[error.run], entries[error.run]
    if not entries:
        raise DamagedError(problems[0].removeprefix("Left out: "), folder)
    return problems


def _update(
    remote: Remote, sizes: Mapping[str, int], changed: Mapping[Path, _Entry], known: dict[str, str], strict: bool
) -> list[str]:
    """Fetches what cached runs lack, removes what their mirrors lack, and notes what is here then."""
    wanted = []
    for path, entry in changed.items():
        (path / _HERE).unlink(missing_ok=True)
        missing = {name: file for name, file in entry.files.items() if entry.before.get(name) != file}
        wanted += [Wanted(entry.mirror, name, file, path) for name, file in missing.items()]
    lost = fetch(remote, sizes, wanted, known, strict=strict)
    for path, entry in changed.items():
        here = {n: file for n, file in entry.files.items() if lost.keys().isdisjoint((path / n).parents)}
        for at, _, names in walk(path):
            for file in (Path(at, name) for name in names):
                if file.relative_to(path).as_posix() not in here:
                    file.unlink(missing_ok=True)
        write_text(path / _HERE, encode(0, "", here)[1].decode())
    return list(lost.values())


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
    for folder in (path, *path.parents[: -len(place().parents) - 1]):
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
