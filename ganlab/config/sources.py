"""The text of experiment files: UTF-8, of a sensible size, and where a run's folder is read, from that folder alone."""

from __future__ import annotations

import os
from pathlib import Path

from ganlab.config.files import shown
from ganlab.errors import ConfigError, RunError
from ganlab.support.paths import open_inside

# An experiment is some lines. Above this it is another file, or a mistake of a program, and reading it takes minutes.
LARGEST = 1 << 20

# What marks a folder as a run's.
_RUN = "run.json"


def read_source(path: Path, home: Path | None = None) -> str:
    """The text of an experiment file, with plain line ends.

    Args:
        path: The file.
        home: The run's folder that the file must lie in, links followed; None for any file.

    Raises:
        ConfigError: It cannot be read, is too large, is no text, or lies elsewhere.
    """
    name = shown(path)
    if home is not None:
        check_inside(path, home, name)
    try:
        with path.open("rb") if home is None else open_inside(home, os.path.relpath(path, home)) as file:
            data = file.read(LARGEST + 1)
    except RunError as error:
        raise ConfigError(str(error)) from None
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror or error}.") from None
    if len(data) > LARGEST:
        raise ConfigError(
            f"{name} is larger than {LARGEST >> 20} MiB, and an experiment file is some lines of text. Is it another "
            "file? Long lists of values belong in files that a dataset reads."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: {_no_text(data, error)}") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ConfigError(
            f"{name}:{line}: a byte 0 is no text: is this an experiment file? Remove it, or name another."
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def run_folder(path: Path) -> Path | None:
    """The folder of a file where that is a run's: what lies there is data, perhaps a stranger's."""
    return path.parent if (path.parent / _RUN).is_file() else None


def check_inside(path: Path, home: Path, called: str) -> None:
    """Refuses a file that does not lie in a run's folder, links followed.

    Args:
        path: The file.
        home: The run's folder.
        called: What the message begins with.

    Raises:
        ConfigError: It lies elsewhere.
    """
    try:
        inside = path.resolve().is_relative_to(home.resolve())
    except (OSError, RuntimeError, ValueError):  # a circle of links, or no path at all
        inside = False
    if not inside:
        raise ConfigError(
            f"{called} leads out of the run's folder {shown(home)}. A run is data, and nothing else is read for it: "
            "copy the file that you trust to another folder, and name that with --gin."
        )


def _no_text(data: bytes, error: UnicodeDecodeError) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "the file is UTF-16. Save it as UTF-8."
    byte = f"the byte {data[error.start]:#04x}"
    if b"\0" in data:
        return f"{byte} is no text: is this an experiment file? Those are text in UTF-8."
    return f"{byte} is no UTF-8. Save the file as UTF-8."
