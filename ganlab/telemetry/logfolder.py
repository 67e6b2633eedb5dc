"""A folder for TensorBoard to read: links to runs, under names that say what differs between them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from ganlab.errors import RunError
from ganlab.runs import Run
from ganlab.runs.naming import Settings, run_names


class LogFolder:
    """A temporary folder, whose links `refresh` keeps in step with the runs there are.

    A link is to the run's directory, not to its files: what a run writes, and the file of one that is resumed, is there
    at once.

    Attributes:
        path: The folder.
        names: What each run is called.
    """

    def __init__(self, find: Callable[[], Iterable[Path]]) -> None:
        """Makes the folder, empty.

        Args:
            find: Gives the directories of the runs to show, those of the moment.
        """
        self._find = find
        self._folder = tempfile.TemporaryDirectory(prefix="ganlab-tensorboard-")
        self._settings: dict[Path, Settings] = {}
        self.path = Path(self._folder.name)
        self.names: dict[Path, str] = {}

    def refresh(self) -> None:
        """Links runs that came and unlinks those that went. Those that stay keep their names."""
        found = {path.resolve() for path in self._find()}
        self._settings = {path: self._settings.get(path) or _settings(path) for path in found}
        names = run_names(self._settings, self.names)
        for path in self.names.keys() - names.keys():
            (self.path / self.names[path]).unlink()
        for path in names.keys() - self.names.keys():
            (self.path / names[path]).symlink_to(path, target_is_directory=True)
        self.names = names

    def close(self) -> None:
        """Removes the folder; the runs stay."""
        self._folder.cleanup()


def _settings(path: Path) -> Settings:
    try:
        settings = Run(path).info.get("settings")
    except RunError:  # gone again, or unreadable: its curves can be shown all the same
        return {}
    return settings if isinstance(settings, dict) else {}
