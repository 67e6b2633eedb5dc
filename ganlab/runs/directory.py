"""One run's directory: created completely or not at all, updated atomically, read back without TensorFlow."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ganlab.errors import RunError, nearest
from ganlab.interfaces.record import Record
from ganlab.runs.fields import cannot_be_made, check_encoding, check_name
from ganlab.runs.info import INFO, read_fields, read_info, read_text
from ganlab.runs.links import check_links
from ganlab.support.atomic import write_new, write_text
from ganlab.support.paths import as_name, walk
from ganlab.support.terminal import line
from ganlab.telemetry.jsonl import read_metrics, to_json

if TYPE_CHECKING:
    from ganlab.plugins.recipes import Recipe

CONFIG, OPERATIVE, METRICS = "config.gin", "operative.gin", "metrics.jsonl"


class RunDirectory:
    """A run on disk, finished or not, as data; `ganlab.Run` adds the methods that need TensorFlow."""

    def __init__(self, path: str | os.PathLike[str], *, keeps: object = None) -> None:
        """Takes a run's directory.

        Args:
            path: The directory.
            keeps: An object to keep alive as long as the run, e.g. the temporary folder that holds the directory.

        Raises:
            RunError: The directory is not a run; the message describes what is there instead.
        """
        self._path, self._keeps = Path(path), keeps
        if not os.path.isfile(self._path / INFO):
            raise RunError(_no_run(self._path))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._path)!r})"

    @property
    def path(self) -> Path:
        """The run's directory."""
        return self._path

    @property
    def info(self) -> dict[str, Any]:
        """The contents of run.json now, with `status`, `step`, `metrics`, `provenance` and more; `update` changes it.

        Fields that are invalid are left out.

        Raises:
            RunError: The file is missing, is not JSON, or does not hold an object.
        """
        return read_info(self._path)

    @property
    def config(self) -> str:
        """The text of config.gin, the whole experiment with overrides folded in."""
        return read_text(self._path, CONFIG)

    @property
    def operative(self) -> str:
        """The text of operative.gin, every parameter in use, including defaults."""
        return read_text(self._path, OPERATIVE)

    def check(self) -> None:
        """Checks that a run, which may come from a stranger, is safe to resume or evaluate.

        Raises:
            RunError: A field of run.json is invalid, or a link in the folder leads out of it.
        """
        check_encoding(self._path)
        for problem in read_fields(self._path)[1].values():
            raise problem
        check_links(self._path)

    def recipe(self, params: Sequence[str] = ()) -> Recipe:
        """The experiment that config.gin describes; nothing is built yet.

        Args:
            params: Overrides, as `--param` takes them.

        Raises:
            ConfigError: The file does not fit the plugins in use, or an override is wrong. If the run used a
                `ganlab_plugins.py`, the message names it.
        """
        from ganlab import config
        from ganlab.runs.plugin_file import named_in_errors

        with named_in_errors(self._path):
            return config.load([self._path / CONFIG], params)

    def iter_metrics(self) -> Iterator[Record]:
        """Every metric of every logged step, in order, one line of metrics.jsonl in memory at a time.

        Raises:
            RunError: The file has an invalid line.
        """
        return read_metrics(self._path / METRICS)

    def metrics(self) -> list[Record]:
        """Every metric of every logged step, in order.

        Raises:
            RunError: The file has an invalid line.
        """
        return list(self.iter_metrics())

    def update(self, **fields: Any) -> None:
        """Sets fields of run.json, atomically: a crash leaves the old file or the new one.

        Args:
            **fields: Top-level fields with their new values, plain ones or numbers of numpy.

        Raises:
            TypeError: A value has no equivalent in JSON.
        """
        write_info(self._path, {**self.info, **fields})


def write_info(folder: Path, info: Mapping[str, Any]) -> None:
    """Replaces a run's run.json, atomically.

    Raises:
        TypeError: A value has no equivalent in JSON.
    """
    write_text(folder / INFO, _to_text(info))


def new_run_path(root: str | os.PathLike[str], stem: str, seed: int, name: str | None = None) -> Path:
    """The path of a new run. Nothing is created yet.

    Args:
        root: The folder of all runs.
        stem: The experiment file's name without its ending. If it cannot name a folder, it is changed.
        seed: The run's seed.
        name: The run's name; by default the UTC time, the seed and four random hex digits.

    Returns:
        `<root>/<stem>/<name>`, which does not exist yet.

    Raises:
        RunError: The name is taken, or cannot name a folder.
    """
    folder = Path(root) / as_name(stem)
    if name is None:
        time = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        return folder / f"{time}-s{seed}-{secrets.token_hex(2)}"
    check_name("run name", name)
    if os.path.lexists(folder / name):
        raise RunError(
            f"A run {name!r} already exists in {line(folder)}. "
            f"Choose another name, or resume it: --resume {line(folder / name)}"
        )
    return folder / name


def create_run(path: str | os.PathLike[str], *, config: str, operative: str, info: Mapping[str, Any]) -> RunDirectory:
    """Creates a run's directory with its first files. If that fails, nothing is left behind.

    Args:
        path: The directory, from `new_run_path`.
        config: The text of config.gin.
        operative: The text of operative.gin.
        info: The fields of run.json.

    Returns:
        The run.

    Raises:
        RunError: The directory already exists, or cannot be created.
        TypeError: A field is nothing that JSON has.
    """
    path = Path(path)
    files = {CONFIG: config, OPERATIVE: operative, INFO: _to_text(info)}
    if os.path.lexists(path):
        raise RunError(f"{path} already exists; a new run needs a directory of its own. Choose another name.")
    made = [parent for parent in path.parents if not parent.exists()]
    part: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        part.chmod(0o777 & ~_umask())  # mkdtemp's folder is for its owner alone
        for name, text in files.items():
            write_new(part / name, text)
        part.rename(path)
    except BaseException as error:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)
        for parent in made:
            try:
                parent.rmdir()
            except OSError:  # never created, or another run is in it by now
                break
        if isinstance(error, OSError):
            raise cannot_be_made(path, error) from error
        raise
    return RunDirectory(path)


def find_runs(root: str | os.PathLike[str]) -> Iterator[Path]:
    """The directories of all runs at or below a folder, sorted by path."""
    for folder, below, files in walk(root):
        if INFO in files:
            below.clear()
            yield Path(folder)
        below[:] = [name for name in below if not name.startswith(".")]


def _to_text(info: Mapping[str, Any]) -> str:
    return json.dumps(to_json(dict(info)), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _no_run(path: Path) -> str:
    name = line(path)
    if not os.path.lexists(path):
        siblings = [item.name for item in path.parent.iterdir()] if os.path.isdir(path.parent) else []
        return f"Run {name} not found: no such directory.{nearest(path.name, siblings)}"
    if not path.is_dir():
        return f"{name} is a file; a run is a directory with a {INFO}."
    if os.path.lexists(path / INFO):
        return f"{name} is not a run: its {INFO} is not a regular file. Restore it, or remove the folder with rm."
    found = list(find_runs(path))
    if not found:
        return f"{name} is not a run: it has no {INFO}."
    latest = max(found, key=_written)
    return f"{name} is not a run but contains {len(found)} of them; the latest is {line(latest)}."


def _written(path: Path) -> float:
    try:
        return os.lstat(path / INFO).st_mtime
    except OSError:  # removed since
        return 0.0
