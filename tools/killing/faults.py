"""Faults in the middle of a file operation, by a library that is preloaded into the process (faults.c)."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    """A fault at one operation on a run's files.

    Attributes:
        kind: "kill", "enospc", "erofs", "jump" for the clock at each operation, or "none" to only keep the log.
        match: Only paths that contain this count, or with a leading "!" those that do not.
        at: The operation, counted from 1 at the process's start.
        part: The fraction of a write that is done before, in [0, 1]; for other operations, whether it is done.
    """

    kind: str = "none"
    match: str = ""
    at: int = 0
    part: float = 0.0


@dataclass(frozen=True)
class Preload:
    """The library, and its records from which a loss of power is computed.

    Attributes:
        library: Its file.
        log: Calls of fsync and operations on names, one per line.
        shadow: A folder of links to files that were removed or replaced.
    """

    library: Path
    log: Path
    shadow: Path

    def environment(self, fault: Fault, run: Path, *, logged: bool) -> dict[str, str]:
        """The environment variables for a process that works on a run. The log of an earlier process is dropped."""
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
    """Compiles the library into a folder and returns its path.

    Raises:
        SystemExit: The C compiler is missing or fails.
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
