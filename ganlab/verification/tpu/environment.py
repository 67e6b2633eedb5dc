"""Where the TPU compiler is installed: beside TensorFlow it must not be, so in an environment of its own."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# The extra [tpu-check] names the same. Pinned, because compiling without a TPU takes names that JAX keeps to itself.
PINS = ("jax==0.10.2", "jaxlib==0.10.2", "libtpu==0.0.51")

SIZE = "600 MB"

CACHE_VARIABLE = "GANLAB_CACHE"


class UnavailableError(Exception):
    """The compiler cannot be had here; the message says why."""


def installed() -> bool:
    """Whether the compiler is installed, here or in the cache."""
    return _installed_here() or _cached().exists()


def compiler_python() -> tuple[str, dict[str, str]]:
    """An interpreter that can import the compiler, which is installed where it is not yet.

    It is this process's own interpreter where the extra `[tpu-check]` is installed, for a process of its own all the
    same; else that of a virtual environment in the user's cache folder, made once from the package index that pip is
    configured with (some 600 MB, about a minute).

    Returns:
        The interpreter's path, and the environment variables to start it with.

    Raises:
        UnavailableError: It cannot be installed; the message has pip's reason.
    """
    if _installed_here():
        return sys.executable, dict(os.environ)
    python = _cached()
    if not python.exists():
        _make(python.parents[1])
    # What is on this process's path must not come before the environment's own packages.
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return str(python), inherited


def cache_folder() -> Path:
    """Where ganlab keeps what it can make again: `$GANLAB_CACHE`, or `ganlab` in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ganlab"


def _installed_here() -> bool:
    for pin in PINS:
        name, _, version = pin.partition("==")
        try:
            if importlib.metadata.version(name) != version:
                return False
        except importlib.metadata.PackageNotFoundError:
            return False
    return True


def _cached() -> Path:
    return cache_folder() / f"tpu-check-{_digest()}" / "bin" / "python"


def _digest() -> str:
    parts = (*PINS, *sys.version_info[:2], platform.system(), platform.machine())
    return hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()[:12]


def _make(folder: Path) -> None:
    """Makes the environment beside its place and moves it there whole: it is never there by half."""
    unfinished = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
        print(f"Installing {', '.join(PINS)} into {folder}, once ({SIZE}) ...", file=sys.stderr, flush=True)
        _run([sys.executable, "-m", "venv", str(unfinished)])
        _run([str(unfinished / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input", *PINS])
        if folder.exists():  # whose interpreter has gone since
            shutil.rmtree(folder, ignore_errors=True)
        # Another process may have been quicker, and a folder is not moved onto one that has content.
        with contextlib.suppress(OSError):
            unfinished.rename(folder)
        if not (folder / "bin" / "python").exists():
            raise UnavailableError(f"{folder} is in the way of the environment; remove it")
    except OSError as error:
        raise UnavailableError(f"{folder} could not be made ({error}); {CACHE_VARIABLE} names another place") from error
    finally:
        if unfinished is not None and unfinished.exists():
            shutil.rmtree(unfinished, ignore_errors=True)


def _run(command: list[str]) -> None:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        reasons = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")] or lines[-1:]
        said = " ".join(reasons) or f"exit code {done.returncode}"
        raise UnavailableError(f"'{' '.join(['python', *command[1:]])}' failed: {said.rstrip('.')}")
