"""Faults in the midst of a file operation, by a library that is preloaded into the process (faults.c)."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    """What happens at one operation on a run's files.

    Attributes:
        kind: "kill", "enospc", "erofs", or "none" to keep the log alone.
        match: Only paths with this in them count, or with a leading "!" those without it.
        at: The operation, counted from 1 at the process's start.
        part: How much of it is done before, in [0, 1]; of what is no write: whether it is.
    """

    kind: str = "none"
    match: str = ""
    at: int = 0
    part: float = 0.0


@dataclass(frozen=True)
class Preload:
    """The library, and where it keeps what a loss of power is worked out from.

    Attributes:
        library: Its file.
        log: What was made durable, and what was done to names, an operation a line.
        shadow: A folder of links to what was removed or replaced.
    """

    library: Path
    log: Path
    shadow: Path

    def environment(self, fault: Fault, run: Path, *, logged: bool) -> dict[str, str]:
        """The variables for a process that works on a run. What an earlier process left in the log is dropped."""
        self.log.unlink(missing_ok=True)
        shutil.rmtree(self.shadow, ignore_errors=True)
        self.shadow.mkdir(parents=True)
        kept = {"CHAOS_LOG": str(self.log), "CHAOS_SHADOW": str(self.shadow)} if logged else {}
        return kept | {
            "LD_PRELOAD": str(self.library),
            "CHAOS_BELOW": str(run.resolve()),
            "CHAOS_FAULT": fault.kind,
            "CHAOS_MATCH": fault.match,
            "CHAOS_AT": str(fault.at),
            "CHAOS_PART": str(round(fault.part * 1e6)),
        }


def build(folder: Path) -> Path:
    """Compiles the library into a folder and gives its path.

    Raises:
        SystemExit: There is no C compiler, or it fails.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("The faults are injected by a small C library: install a C compiler (cc), on Linux.")
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    made = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl", "-lpthread"],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        raise SystemExit(f"{source} cannot be compiled:\n{made.stderr}")
    return library
