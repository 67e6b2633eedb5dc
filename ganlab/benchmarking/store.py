"""A benchmark's folder: what was asked, what each constraint costs, what was chosen, and the folders of its sweeps."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.support.atomic import new_folder, write_text
from ganlab.support.locking import locked_folder
from ganlab.support.paths import as_name, read_inside
from ganlab.support.strict_json import parse_json
from ganlab.support.terminal import line
from ganlab.telemetry.jsonl import to_json

INFO, RESULTS, PAGE, TABLES = "benchmark.json", "results.json", "report.html", "report.md"
_LARGEST = 1 << 26
_TUNING = "tune"


class Folder:
    """A benchmark on disk.

    Attributes:
        path: The folder.
        plugin_file: The plugin file in use, which is not read from the folder.
        info: The content of benchmark.json: `asked`, and what is known of each constraint under `constraints`.
    """

    def __init__(self, path: Path) -> None:
        """Reads a benchmark's folder.

        Raises:
            RunError: There is none.
        """
        self.path = path
        self.plugin_file: str | None = None
        self._read()

    @staticmethod
    def create(path: Path, info: Mapping[str, Any]) -> Folder:
        """Creates the folder completely, or not at all.

        Raises:
            RunError: It exists already, or cannot be created.
        """
        Folder.check_free(path)
        with new_folder(path, _cannot_be_made) as part:
            write_text(part / INFO, as_text({**info, "constraints": {}}))
        return Folder(path)

    @staticmethod
    def check_free(path: Path) -> None:
        """Checks that nothing exists where a new benchmark is to go.

        Raises:
            RunError: Something does.
        """
        if path.exists() or path.is_symlink():
            again = f", or resume it: ganlab benchmark --resume {line(path)}" if (path / INFO).is_file() else "."
            raise RunError(f"{line(path)} already exists. Choose another --name{again}")

    @property
    def asked(self) -> dict[str, Any]:
        """The request."""
        asked: dict[str, Any] = self.info["asked"]
        return asked

    def known(self, constraint: str) -> dict[str, Any]:
        """The facts recorded of a constraint: `cost`, `chosen` by task, `certificates`."""
        found: dict[str, Any] = self.info["constraints"].setdefault(constraint, {})
        return found

    def sweep(self, constraint: str, task: str, *, tuning: bool = False) -> Path:
        """The folder of a sweep."""
        return self.of(constraint) / (f"{task}-{_TUNING}" if tuning else task)

    def of(self, constraint: str) -> Path:
        """The folder of a constraint."""
        return self.path / as_name(constraint)

    def save(self) -> None:
        """Writes benchmark.json; a crash leaves the old file or the new one."""
        write_text(self.path / INFO, as_text(self.info))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the benchmark until the end of the block, or of the process.

        Raises:
            RunError: Another process holds it.
        """
        with locked_folder(self.path) as ours:
            if not ours:
                raise RunError(
                    f"Another process is working on the benchmark {line(self.path)}. Wait for it, or stop it first."
                )
            self._read()
            yield

    def _read(self) -> None:
        path = line(self.path / INFO)
        try:
            info = parse_json(read_inside(self.path, INFO, most=_LARGEST))
        except OSError:
            raise RunError(
                f"No benchmark at {line(self.path)}: {path} is missing. Give the folder that 'ganlab benchmark' made."
            ) from None
        except ValueError as error:
            raise RunError(f"{path} is not JSON ({error}). Restore it, or start a new benchmark.") from None
        if not (isinstance(info, dict) and isinstance(info.get("asked"), dict)) or not _are_tables(
            info.get("constraints")
        ):
            raise RunError(f"{path} is not a benchmark of this ganlab. Restore it, or start a new one.")
        self.info = info


def as_text(content: Any) -> str:
    """JSON as files have it."""
    return json.dumps(to_json(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _cannot_be_made(path: Path, error: OSError) -> RunError:
    return RunError(f"The benchmark {line(path)} cannot be made: {error.strerror or error}. Choose another --runs.")


def _are_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())
