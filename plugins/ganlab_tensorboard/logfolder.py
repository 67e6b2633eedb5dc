"""A folder for TensorBoard to read: links to runs, named by the settings in which they differ."""

from __future__ import annotations

import contextlib
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from ganlab.files import line, walk
from ganlab.runs import MOST_SETTINGS, RunDirectory, Settings
from ganlab_tensorboard.run_names import run_names

# The names that TensorBoard treats as event files.
_PATTERN = "*tfevents*"

# Levels of nested folders in a run; TensorBoard descends into them recursively.
_DEEPEST = 32


class LogFolder:
    """A temporary folder with links, which `refresh` updates to the existing runs.

    A link points to the run's directory, not to its files, so that new files appear at once. But TensorBoard follows
    links and waits for pipes, and a run may come from a stranger. A run that contains anything but files and folders is
    therefore represented by a folder with links to its event files only.

    Attributes:
        path: The folder.
        names: The name of each run.
    """

    def __init__(self, find: Callable[[], Iterable[Path]], say: Callable[[str], None] = lambda sentence: None) -> None:
        """Makes the folder, empty.

        Args:
            find: Returns the directories of the runs to show at present.
            say: Called with a sentence for each run that cannot be linked whole.
        """
        self._find, self._say = find, say
        self._folder = tempfile.TemporaryDirectory(prefix="ganlab-tensorboard-")
        self._settings: dict[Path, Settings] = {}
        self._odd: set[Path] = set()
        self.path = Path(self._folder.name)
        self.names: dict[Path, str] = {}

    def refresh(self) -> None:
        """Links new runs and unlinks those that were removed. The others keep their names."""
        paths = {path.resolve() for path in self._find()}
        self._settings = {path: self._settings.get(path) or _settings(path) for path in paths}
        names = run_names(self._settings, self.names)
        for path in self.names.keys() - names.keys():
            self._remove(path)
        for path in names.keys() - self.names.keys():
            self._add(path, self.path / names[path])
        self.names = names
        for path in self._odd:
            self._link_files(path)

    def close(self) -> None:
        """Removes the folder; the runs stay."""
        self._folder.cleanup()

    def _add(self, run: Path, at: Path) -> None:
        oddity = _oddity(run)
        if oddity is None:
            at.symlink_to(run, target_is_directory=True)
            return
        self._say(f"{line(run)} contains {oddity}, so TensorBoard gets only its event files.")
        at.mkdir()
        self._odd.add(run)

    def _remove(self, run: Path) -> None:
        at = self.path / self.names[run]
        if run in self._odd:
            self._odd.remove(run)
            for link in at.iterdir():
                link.unlink()
            at.rmdir()
        else:
            at.unlink()

    def _link_files(self, run: Path) -> None:
        at = self.path / self.names[run]
        for file in run.glob(_PATTERN):
            with contextlib.suppress(OSError):  # removed meanwhile, or linked already
                if stat.S_ISREG(file.lstat().st_mode):
                    (at / file.name).symlink_to(file)


def _settings(path: Path) -> Settings:
    try:
        settings: Settings = RunDirectory(path).info.get("settings", {})
    except Exception:  # removed meanwhile, or unreadable: its curves can still be shown, and the other runs
        return {}
    return settings if len(settings) <= MOST_SETTINGS else {}


def _oddity(run: Path) -> str | None:
    """Describes what TensorBoard must not read in a run's directory; None if there is nothing."""
    for at, folders, files in walk(run):
        below = Path(at).relative_to(run)
        if len(below.parts) >= _DEEPEST and folders:
            return "deeply nested folders"
        for name in files:
            with contextlib.suppress(OSError):
                if not stat.S_ISREG((Path(at) / name).lstat().st_mode):
                    return f"{line(below / name)}, which is not a regular file"
    return None
