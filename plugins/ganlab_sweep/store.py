"""A sweep's folder: what was asked, what was proposed, and an experiment file for each configuration."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ganlab import new_folder
from ganlab.errors import RunError
from ganlab.files import check_links, is_name, line, locked_folder, read_inside, read_json, schema, write_text
from ganlab.fingerprints import digest
from ganlab.runs import check_new
from ganlab.telemetry import to_json
from ganlab_sweep.configurations import Configuration
from ganlab_sweep.request import Proposed, Request

INFO, TRIALS = "sweep.json", "trials"
# The largest file that is read, in bytes. A sweep of ten thousand configurations needs a fraction of it.
_LARGEST = 1 << 26

_SETTINGS = schema.table(schema.TEXT)
# The statuses that a trial may have without a run directory that says so.
_NOTED = ("pruned", "failed", "timed out", "diverged", "interrupted")
_SCHEMA = schema.fields(
    {
        "asked": schema.fields(
            {}, {name: each.kind.schema for name, each in Request.settings().items() if each.is_stored}
        ),
        "configurations": schema.table(schema.fields({"settings": _SETTINGS}, {"file": schema.TEXT}), names=is_name),
        "proposals": schema.items(
            schema.fields(
                {"settings": _SETTINGS},
                {
                    "configuration": schema.null_or(schema.TEXT),
                    "value": schema.null_or(schema.FIGURE),
                    **dict.fromkeys(("ended", "given_up"), schema.FLAG),
                    "last_step": schema.null_or(schema.whole()),
                    "error": schema.TEXT,
                },
            )
        ),
        "trials": schema.table(schema.fields({"status": schema.word(*_NOTED), "error": schema.TEXT})),
    },
    {"folder": schema.PATH, "threads": schema.whole(1)},
)


class Sweep:
    """A sweep on disk.

    Attributes:
        path: Its folder.
        request: What was asked for; a process that resumes the sweep may replace it.
        proposals: The settings that its search has proposed, in order.
        info: The rest of sweep.json; `save` writes all of it.
    """

    def __init__(self, path: Path) -> None:
        """Reads a sweep.

        Raises:
            RunError: There is none.
        """
        self.path = path
        self._read()
        self.request = Request.read(self.info["asked"])

    @staticmethod
    def create(path: Path, info: Mapping[str, Any], configurations: Iterable[Configuration]) -> Sweep:
        """Creates the folder completely, or not at all.

        Args:
            path: The folder, which must not exist yet.
            info: The content of sweep.json; the configurations are added.
            configurations: The configurations that are known.

        Raises:
            RunError: The folder already exists, or cannot be created.
        """
        check_new(path, "sweep")
        with new_folder(path, _cannot_be_made) as part:
            (part / TRIALS).mkdir()
            write_text(part / INFO, _text({**info, "configurations": {}}))
            sweep = Sweep(part)
            for configuration in configurations:
                sweep.add(configuration)
            sweep.save()
        sweep.path = path
        return sweep

    def _read(self) -> None:
        remedy = "Restore it, or start a new sweep."
        try:
            info: dict[str, Any] = read_json(self.path, INFO, _SCHEMA, most=_LARGEST, remedy=remedy)
        except OSError:
            path = line(self.path / INFO)
            raise RunError(
                f"No sweep at {line(self.path)}: {path} is missing. Give the folder that 'ganlab sweep' made."
            ) from None
        self.info = info
        self.proposals = [Proposed.read(stored) for stored in info["proposals"]]

    @property
    def threads(self) -> int:
        """Threads per trial: those of this process's request, or those that the sweep began with."""
        return self.request.threads or int(self.info["threads"])

    @property
    def notes(self) -> dict[str, dict[str, str]]:
        """Status and error, by trial, that no run directory has: `pruned`, or `failed` before there was a directory."""
        notes: dict[str, dict[str, str]] = self.info["trials"]
        return notes

    def gin(self, configuration: str) -> Path:
        """A configuration's experiment file."""
        return self.path / TRIALS / f"{configuration}.gin"

    def log(self, configuration: str, seed: int) -> Path:
        """The file with everything that a trial's processes printed."""
        return self.path / TRIALS / f"{configuration}-s{seed}.log"

    def run(self, configuration: str, seed: int) -> Path:
        """A trial's run directory: where `ganlab run` puts it, given the experiment file and the sweep's folder."""
        return self.path / configuration / f"s{seed}"

    def configurations(self) -> list[Configuration]:
        """The configurations that are known, in order.

        Raises:
            RunError: An experiment file is missing or cannot be read.
        """
        configurations = []
        for name, stored in self.info["configurations"].items():
            try:
                gin = self.gin(name)
                text = read_inside(self.path, gin.relative_to(self.path), most=_LARGEST).decode()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                raise RunError(f"{line(gin)} cannot be read: {reason}. Restore it.") from None
            if stored.get("file", digest(text.encode())) != digest(text.encode()):
                raise RunError(f"{line(gin)} has changed since the sweep wrote it. Restore it, or start a new sweep.")
            configurations.append(Configuration(name, stored["settings"], text))
        return configurations

    def add(self, configuration: Configuration) -> None:
        """Adds a new configuration and writes its experiment file; `save` records it in sweep.json."""
        write_text(self.gin(configuration.name), configuration.text)
        hashed = {"settings": dict(configuration.settings), "file": digest(configuration.text.encode())}
        self.info["configurations"][configuration.name] = hashed

    def save(self) -> None:
        """Writes sweep.json; a crash leaves the old file or the new one."""
        self.info["asked"] = self.request.as_json()
        self.info["proposals"] = [proposal.as_json() for proposal in self.proposals]
        write_text(self.path / INFO, _text(self.info))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the sweep until the end of the block, or of the process, however it dies.

        Rereads what another process wrote before, except for the request.

        Raises:
            RunError: Another process holds it, or a link in it leads out of it.
        """
        with locked_folder(self.path) as ours:
            if not ours:
                raise RunError(f"Another process is working on the sweep {self.path}. Wait for it, or stop it first.")
            check_links(self.path)  # its trials append to logs and write into runs
            self._read()
            yield


def _text(info: Mapping[str, Any]) -> str:
    return json.dumps(to_json(dict(info)), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _cannot_be_made(path: Path, error: OSError) -> RunError:
    return RunError(f"The sweep {path} cannot be made: {error.strerror or error}. Choose another --runs.")
