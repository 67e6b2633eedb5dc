"""A folder for TensorBoard to read: links to runs, under names that say what differs between them."""

from __future__ import annotations

import contextlib
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from ganlab.errors import RunError
from ganlab.runs import RunDirectory
from ganlab.runs.naming import Scalar, Settings, run_names
from ganlab.support.paths import walk
from ganlab.support.terminal import line

# What TensorBoard takes for an event file.
_PATTERN = "*tfevents*"

# Folders in folders of a run; TensorBoard looks into each from within the one above.
_DEEPEST = 32


class LogFolder:
    """A temporary folder, whose links `refresh` keeps in step with the runs there are.

    A link is to the run's directory, not to its files: what a run writes, and the file of one that is resumed, is there
    at once. TensorBoard follows links and waits for pipes, though, and a run may be a stranger's: of one that has more
    in it than files and folders, there is a folder with links to its event files alone.

    Attributes:
        path: The folder.
        names: What each run is called.
    """

    def __init__(self, find: Callable[[], Iterable[Path]], say: Callable[[str], None] = lambda sentence: None) -> None:
        """Makes the folder, empty.

        Args:
            find: Gives the directories of the runs to show, those of the moment.
            say: Told in a sentence of each run that is odd.
        """
        self._find, self._say = find, say
        self._folder = tempfile.TemporaryDirectory(prefix="ganlab-tensorboard-")
        self._settings: dict[Path, Settings] = {}
        self._odd: set[Path] = set()
        self.path = Path(self._folder.name)
        self.names: dict[Path, str] = {}

    def refresh(self) -> None:
        """Links runs that came and unlinks those that went. Those that stay keep their names."""
        found = {path.resolve() for path in self._find()}
        self._settings = {path: self._settings.get(path) or _settings(path) for path in found}
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
        self._say(f"{line(run)} has {oddity} in it, so TensorBoard is given the event files of it alone.")
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
            with contextlib.suppress(OSError):  # gone again, or there already
                if stat.S_ISREG(file.lstat().st_mode):
                    (at / file.name).symlink_to(file)


def _settings(path: Path) -> Settings:
    try:
        settings = RunDirectory(path).info.get("settings")
    except (RunError, OSError):  # gone again, or unreadable: its curves can be shown all the same
        return {}
    if not isinstance(settings, dict):
        return {}
    return {name: value for name, value in settings.items() if isinstance(value, Scalar)}


def _oddity(run: Path) -> str | None:
    """What there is in a run's directory that TensorBoard must not meet, or None."""
    for at, folders, files in walk(run):
        below = Path(at).relative_to(run)
        if len(below.parts) >= _DEEPEST and folders:
            return "folders in folders"
        for name in files:
            with contextlib.suppress(OSError):
                if not stat.S_ISREG((Path(at) / name).lstat().st_mode):
                    return f"{line(below / name)}, which is no regular file,"
    return None
