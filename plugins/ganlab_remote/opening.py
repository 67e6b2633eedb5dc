"""Addresses in the place of folders: what a command reads is fetched, and the run that it trains is mirrored."""

from __future__ import annotations

import contextlib
import glob
import secrets
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ganlab import new_folder
from ganlab.commands import say, unheard, warn
from ganlab.errors import GanlabError, RunError, TrainingFailedError
from ganlab.files import is_name, line
from ganlab.runs import CONFIG, INFO, LOCK, RunDirectory, at_rest
from ganlab_remote.addresses import Remote
from ganlab_remote.cache import Wanted, cached, fetch, waiting_for
from ganlab_remote.manifests import Manifest
from ganlab_remote.mirroring import Mirror, Mirroring, recorded
from ganlab_remote.snapshots import RECORD

# Where runs at addresses are trained.
RUNS = Path("runs")

Opened = tuple[Path, Callable[[Path, bool], None]]


@contextlib.contextmanager
def opened(address: str, use: str) -> Iterator[Opened]:
    """Context manager: opens an address, as the hook `ganlab_open_runs` says."""
    if use == "create":
        root = Remote(address)
        root.check_writable()
        with _mirrored(RUNS, lambda path, again: _created(root, path, again)) as opened:
            yield opened
    elif use == "resume":
        mirror, folder = _resumed(Remote(address), start=False)
        with _mirrored(folder, lambda path, again: mirror) as opened:
            yield opened
    else:
        parts = address.split("/")
        first = next((n for n, part in enumerate(parts) if n > 2 and glob.has_magic(part)), len(parts))
        with cached("/".join(parts[:first]), checkpoints=use != "list") as folder:
            yield folder.joinpath(*parts[first:]), lambda path, again: None


@contextlib.contextmanager
def _mirrored(folder: Path, mirror_of: Callable[[Path, bool], Mirror]) -> Iterator[Opened]:
    """Context manager: mirrors the run that is trained in the block, and sends its last state at the end."""
    started: list[Mirroring] = []
    try:
        yield folder, lambda path, again: started.append(Mirroring(mirror_of(path, again), path))
    finally:
        error = sys.exc_info()[1]
        for mirroring in started:
            try:
                if sent := mirroring.finish():
                    with unheard():
                        say(sent)
            except TrainingFailedError as failure:
                if not isinstance(error, (GanlabError, TrainingFailedError)):
                    raise
                warn(str(failure))  # the error is that of the run


def _created(root: Remote, path: Path, again: bool) -> Mirror:
    remote = root.below(path.relative_to(RUNS).as_posix())
    if again:
        return _resumed(remote, start=True)[0]
    mirror = Mirror(remote, path)
    if mirror.begin() is not None:
        where = mirror.remote.address
        words = f"--resume {line(shlex.quote(where))}"
        raise RunError(f"{line(where)} has a run already. Choose another name, or resume it: {words}")
    return mirror


def _resumed(remote: Remote, *, start: bool) -> tuple[Mirror, Path]:
    """Takes a run from its mirror, unless its folder here sent the newest state, or there is none and it may start."""
    names = remote.address.partition("://")[2].split("/")[-2:]
    if len(names) < 2 or not all(map(is_name, names)):
        raise RunError(f"{line(remote.address)} is not the address of a run, which ends in EXPERIMENT/NAME.")
    folder = RUNS.joinpath(*names)
    mirror = Mirror(remote, folder)
    missing = RunError(f"{line(remote.address)} is not a run. List those of a folder: ganlab runs list ADDRESS")
    if not start and mirror.begin() is None and not folder.exists():
        raise missing
    with waiting_for(folder.parent):  # other processes that take runs, such as this run's other workers
        state = mirror.begin()
        if start and state is None and recorded(folder) is None:
            return mirror, folder  # new, or ended before anything was sent
        if _is_here(remote, folder, state):
            if RunDirectory(folder).info.get("status") == "completed":  # which ganlab refuses to resume
                mirror.send(again=False)
        else:
            if state is None or not {CONFIG, INFO}.issubset(state.files):
                raise missing
            mirror.damaged = _take(remote, folder, state)
            mirror.record()
    return mirror, folder


def _is_here(remote: Remote, folder: Path, state: Manifest | None) -> bool:
    if not folder.exists():
        return False
    record = recorded(folder)
    if record is None or record["address"] != remote.address:
        raise RunError(f"{line(folder)} is another run than {line(remote.address)}. Rename it, or work elsewhere.")
    return bool(record["manifest"] == (state.name if state else ""))


def _take(remote: Remote, folder: Path, state: Manifest) -> set[str]:
    """Fetches a run, whole or not at all; another state of it that is here stays in a hidden folder.

    Returns:
        The damaged parts, of checkpoints that are left out.
    """
    aside = folder.with_name(f".{folder.name}.before-{secrets.token_hex(4)}")
    if folder.exists():
        with at_rest([RunDirectory(folder)], shared=False):
            folder.rename(aside)
        warn(f"{line(folder)} had another state than its mirror, and was renamed to {line(aside)}.")
    try:
        with new_folder(folder) as part:
            known: dict[str, str] = {}
            files = [item for item in state.files.items() if item[0] not in (LOCK, RECORD)]
            wanted = [Wanted("", name, file, part) for name, file in files]
            lost = fetch(remote, remote.sizes(), wanted, known)
    except BaseException:
        if aside.exists():
            aside.rename(folder)
        raise
    for problem in lost.values():
        warn(problem)
    return {path.rpartition("/")[2] for path in known}
