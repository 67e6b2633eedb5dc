"""Facts that were read from published programs and papers: tools/recipes/*.toml.

A top-level key `program` names what the sources of a file of facts are in. Each table has facts for the experiment file
of its name, or for all those of its key `files` (patterns). A fact is `[value, source]`, or
`[value, source, words]` where ours is another and the head of the experiment file says so in these words. A source is
"path:line" in the program, "owner/repository@commit path:line" in another, or "arXiv:number place". Later facts of a
file take the place of earlier ones of the same name.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "recipes"
_SOURCE = re.compile(r"(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)@(?P<commit>[0-9a-f]{7}) (?P<path>\S+):(?P<line>\d+)(-\d+)?")
_PAPER = re.compile(r"arXiv:\d{4}\.\d{5} \S.*")


@dataclass(frozen=True)
class Fact:
    """What a source does: a value, where it stands, and the words of the head that disclose that ours is another."""

    value: Any
    source: str
    words: str | None = None


class Table(dict[str, Fact]):
    """The facts of an experiment file by name."""

    @classmethod
    def of(cls, name: str, folder: Path = FOLDER) -> Table:
        """The facts of the file of this name.

        Raises:
            ValueError: A fact has no source, or one of another form.
        """
        found = cls()
        for path in sorted(folder.glob("*.toml")):
            whole = tomllib.loads(path.read_text())
            for title, facts in whole.items():
                if isinstance(facts, Mapping) and any(
                    fnmatch.fnmatchcase(name, pattern) for pattern in facts.get("files", [title])
                ):
                    program = facts.get("program", whole.get("program", ""))
                    rest = {key: value for key, value in facts.items() if key not in ("files", "program")}
                    found.update({fact: _read(f"{path.name}: {fact}", row, program) for fact, row in _leaves(rest)})
        return found


def cited_line(source: str, folder: Path) -> str | None:
    """The line that a source names, from bare clones in a folder; None where it names none or there is no clone."""
    if not (match := _SOURCE.fullmatch(source)):
        return None
    for place in ("repo", "repo/.git", "."):
        clone = folder / f"{match['owner']}+{match['name']}" / place
        command = ["git", f"--git-dir={clone}", "show", f"{match['commit']}:{match['path']}"]
        shown = subprocess.run(command, capture_output=True, text=True, errors="replace")
        lines = shown.stdout.splitlines()
        if not shown.returncode:
            number = int(match["line"])
            return lines[number - 1] if number <= len(lines) else f"MISSING: {len(lines)} lines"
    return "MISSING" if (folder / f"{match['owner']}+{match['name']}").exists() else None


def _leaves(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, list[Any]]]:
    for key, value in table.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from _leaves(value, name)
        else:
            yield name, value


def _read(place: str, row: list[Any], program: str) -> Fact:
    if not isinstance(row, list) or len(row) not in (2, 3):
        raise ValueError(f"{place} = {row!r} must be [value, source] or [value, source, words].")
    source = row[1] if "@" in row[1] or row[1].startswith("arXiv:") else f"{program} {row[1]}"
    if not (_SOURCE.fullmatch(source) or _PAPER.fullmatch(source)):
        raise ValueError(f"{place} has the source {source!r}, which names no line of a pinned program and no paper.")
    return Fact(row[0], source, *row[2:])
