"""Reads the text of experiment files: UTF-8, of limited size, and for the folder of a run or a sweep only from it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ganlab.config.files import shown
from ganlab.errors import ConfigError, RunError
from ganlab.support.paths import open_inside, open_regular

# An experiment file has a few lines. A larger file is another file or a program's mistake, and takes minutes to read.
LARGEST = 1 << 20

# Names, numbers, signs and line ends of a file, each of which takes as long to parse; and quotation marks, because gin
# takes quadratic time for strings that follow one another.
_WORD, _MOST_WORDS, _MOST_QUOTES = re.compile(r"\w+|[^\w ]"), 100_000, 20_000


def read_source(path: Path, home: Path | None = None) -> str:
    r"""The text of an experiment file, with line ends as \n; with `home`, it must lie in that folder."""
    name = shown(path)
    if home is not None:
        check_inside(path, home, name)
    try:
        with open_regular(path) if home is None else open_inside(home, os.path.relpath(path, home)) as file:
            data = file.read(LARGEST + 1)
    except RunError as error:
        raise ConfigError(str(error)) from None
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror or error}.") from None
    if len(data) > LARGEST:
        raise ConfigError(
            f"{name} is larger than {LARGEST >> 20} MiB, but an experiment file has only a few lines of text. Is it "
            "another file? Long lists of values belong in files that a dataset reads."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: {_decoding_problem(data, error)}") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ConfigError(
            f"{name}:{line}: a zero byte is not text: is this an experiment file? Remove it, or choose another file."
        )
    if sum(1 for _ in _WORD.finditer(text)) > _MOST_WORDS or text.count("'") + text.count('"') > _MOST_QUOTES:
        raise ConfigError(
            f"{name} has more than {_MOST_WORDS:,} names, numbers and signs, or {_MOST_QUOTES:,} quotation marks, but "
            "an experiment file has a few hundred. Is it another file? Long lists of values belong in files that a "
            "dataset reads."
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check_inside(path: Path, home: Path, called: str) -> None:
    """Refuses a file that lies outside a folder, after following links; the message begins with `called`."""
    try:
        inside = path.resolve().is_relative_to(home.resolve())
    except (OSError, RuntimeError, ValueError):  # circular links, or an invalid path
        inside = False
    if not inside:
        raise ConfigError(
            f"{called} leads out of the folder {shown(home)}. For a run, a sweep or a benchmark, only files in its "
            "folder are read: if you trust the file, copy it to another folder and pass that copy with --gin."
        )


def _decoding_problem(data: bytes, error: UnicodeDecodeError) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "the file is UTF-16. Save it as UTF-8."
    byte = f"the byte {data[error.start]:#04x}"
    if b"\0" in data:
        return f"{byte} is not text: is this an experiment file? Those are text in UTF-8."
    return f"{byte} is not UTF-8. Save the file as UTF-8."
