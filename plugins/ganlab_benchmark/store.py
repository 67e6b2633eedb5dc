"""A benchmark's folder: what was asked, what each constraint costs, what was chosen, and the folders of its sweeps."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ganlab import new_folder
from ganlab.errors import RunError
from ganlab.files import as_name, check_links, line, locked_folder, read_json, schema, write_text
from ganlab.runs import check_new
from ganlab.telemetry import to_json

INFO, RESULTS, PAGE, TABLES = "benchmark.json", "results.json", "report.html", "report.md"
_LARGEST = 1 << 26
_TUNING = "tune"

_COUNT = schema.whole(1)
_RATIO = schema.number(0, 1e9)
_COST = schema.fields({**dict.fromkeys(("ratio", "low", "high"), _RATIO), "ratios": schema.items(_RATIO)})
_FAILURE = schema.fields({"error": schema.TEXT}, {"kind": schema.word("failed", "refused")})
_BOUND = schema.null_or(schema.number(0, 1e30))
_SCHEMA = schema.fields(
    {
        "created": schema.TEXT,
        "asked": schema.fields(
            {
                "suite": schema.PATH,
                "fingerprint": schema.TEXT,
                "constraints": schema.items(schema.TEXT),
                "jobs": _COUNT,
                "threads": _COUNT,
                "timeout": schema.null_or(schema.number(0, 1e11)),
                "against": schema.items(schema.PATH),
                "no_plugin": schema.items(schema.TEXT),
                "plugin_file": schema.null_or(schema.PATH),
            },
            {"plugin_content": schema.null_or(schema.TEXT)},
        ),
        "constraints": schema.table(
            schema.fields(
                {},
                {
                    "cost": schema.Rule(
                        "an object of fields",
                        lambda value: isinstance(value, dict),
                        lambda value: [("", value, _FAILURE if "error" in value else _COST)],
                    ),
                    "chosen": schema.table(schema.null_or(schema.whole())),
                    "certificates": schema.table(
                        schema.table(schema.fields({}, {"lower": _BOUND, "upper": _BOUND, "note": schema.TEXT}))
                    ),
                },
            )
        ),
    }
)


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
        check_new(path, "benchmark")
        with new_folder(path, _cannot_be_made) as part:
            write_text(part / INFO, as_text({**info, "constraints": {}}))
        return Folder(path)

    @property
    def asked(self) -> dict[str, Any]:
        """The request."""
        asked: dict[str, Any] = self.info["asked"]
        return asked

    def known(self, constraint: str) -> dict[str, Any]:
        """The facts recorded of a constraint: `cost`, `chosen` by task, `certificates`."""
        facts: dict[str, Any] = self.info["constraints"].setdefault(constraint, {})
        return facts

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
            RunError: Another process holds it, or a link in it leads out of it.
        """
        with locked_folder(self.path) as ours:
            if not ours:
                raise RunError(
                    f"Another process is working on the benchmark {line(self.path)}. Wait for it, or stop it first."
                )
            check_links(self.path)
            self._read()
            yield

    def _read(self) -> None:
        remedy = "Restore it, or start a new benchmark."
        try:
            info: dict[str, Any] = read_json(self.path, INFO, _SCHEMA, most=_LARGEST, remedy=remedy)
        except OSError:
            path = line(self.path / INFO)
            raise RunError(
                f"No benchmark at {line(self.path)}: {path} is missing. Give the folder that 'ganlab benchmark' made."
            ) from None
        self.info = info


def as_text(content: Any) -> str:
    """JSON as files have it."""
    return json.dumps(to_json(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _cannot_be_made(path: Path, error: OSError) -> RunError:
    return RunError(f"The benchmark {line(path)} cannot be made: {error.strerror or error}. Choose another --runs.")
