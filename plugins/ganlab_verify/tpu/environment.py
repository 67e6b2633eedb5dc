"""The environment that the TPU compiler is installed in. It needs its own, because it conflicts with TensorFlow."""

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

from ganlab import python_command
from ganlab.files import local, orderly_end
from ganlab_verify.process import run_process

# The same as in the extra [tpu-check]. Pinned, because compiling without a TPU uses private names of JAX.
PINS = ("jax==0.10.2", "jaxlib==0.10.2", "libtpu==0.0.51")

SIZE = "600 MB"

CACHE_VARIABLE = "GANLAB_CACHE"


class UnavailableError(Exception):
    """The compiler is not available here; the message gives the reason."""


def installed() -> bool:
    """Whether the compiler is installed, here or in the cache."""
    return _installed_here() or _cached().exists()


def compiler_python() -> tuple[str, dict[str, str]]:
    """Finds an interpreter that can import the compiler, and installs the compiler if it is missing.

    Where the extra `[tpu-check]` is installed this is the current interpreter, which still has to run in a separate
    process. Otherwise it is that of a virtual environment in the user's cache folder, made once from the package index
    that pip is configured with (about 600 MB, about a minute).

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
    # This process's path must not come before the environment's own packages.
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return str(python), inherited


def cache_folder() -> Path:
    """The folder for files that ganlab can make again: `$GANLAB_CACHE`, or `ganlab` in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return local(chosen, CACHE_VARIABLE).expanduser().resolve()
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


@orderly_end()
def _make(folder: Path) -> None:
    """Makes the environment in a temporary folder and then renames that, so that no half-made one is ever found."""
    unfinished = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
        print(f"Installing {', '.join(PINS)} into {folder}, once ({SIZE}) ...", file=sys.stderr, flush=True)
        _run(python_command("-m", "venv", str(unfinished)))
        _run([str(unfinished / "bin" / "python"), "-P", "-m", "pip", "install", "--quiet", "--no-input", *PINS])
        if folder.exists():  # its interpreter has disappeared
            shutil.rmtree(folder, ignore_errors=True)
        # Another process may have been quicker; renaming onto a folder with content fails.
        with contextlib.suppress(OSError):
            unfinished.rename(folder)
        if not (folder / "bin" / "python").exists():
            raise UnavailableError(f"{folder} is in the way of the environment; remove it")
    except OSError as error:
        raise UnavailableError(f"cannot create {folder} ({error}); set {CACHE_VARIABLE} to another place") from error
    finally:
        if unfinished is not None and unfinished.exists():
            shutil.rmtree(unfinished, ignore_errors=True)


def _run(command: list[str]) -> None:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    done = run_process(command, cwd=os.sep, env=environment, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        reasons = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")] or lines[-1:]
        reason = " ".join(reasons) or f"exit code {done.returncode}"
        raise UnavailableError(f"'{' '.join(['python', *command[1:]])}' failed: {reason.rstrip('.')}")
