"""Reads the commit of a git repository, which may be a stranger's: its configuration and its hooks are not used.

Git obeys commands that a repository's own configuration names (`core.fsmonitor`, filters, submodules and more). So git
is given another folder in place of `.git`, which has nothing but the commit, and the repository's index and objects.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.support.paths import read_inside
from ganlab.support.processes import run_process

_SECONDS = 10
_LARGEST = 1 << 24
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# A branch may be named by another reference, as HEAD is.
_DEPTH = 5


def git_state(folder: Path) -> dict[str, Any] | None:
    """The current commit of the repository that a folder is in.

    Args:
        folder: Any folder, in a repository or not.

    Returns:
        `commit`, and `dirty`: whether tracked files differ from it, those of submodules left out. Untracked files do
        not count, or the folder of runs would make every run dirty. None outside a repository, before its first
        commit, or if git does not answer.
    """
    try:
        top = next(at for at in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(at / ".git"))
        own = _git_folder(top)
        named = _line(own, "commondir") if (own / "commondir").is_file() else ""
        common = (own / named).resolve()
        commit = _commit(own, common)
        return None if commit is None else {"commit": commit, "dirty": _is_dirty(top, own, common, commit)}
    except (OSError, ValueError, StopIteration, RunError, subprocess.SubprocessError):
        return None


def _git_folder(top: Path) -> Path:
    git = top / ".git"
    if git.is_dir():
        return git.resolve()
    # In a worktree and in a submodule it is a file that names the folder.
    return (top / _line(top, ".git").removeprefix("gitdir: ")).resolve()


def _commit(own: Path, common: Path) -> str | None:
    name = "HEAD"
    for _ in range(_DEPTH):
        place = own if (own / name).is_file() else common
        if not (place / name).is_file():
            return _packed(common, name)
        text = _line(place, name)
        if not text.startswith("ref: "):
            return text if _COMMIT.fullmatch(text) else None
        name = text.removeprefix("ref: ")
    return None


def _packed(common: Path, name: str) -> str | None:
    if (common / "packed-refs").is_file():
        for text in read_inside(common, "packed-refs", most=_LARGEST).decode().splitlines():
            commit, _, other = text.partition(" ")
            if other == name and _COMMIT.fullmatch(commit):
                return commit
    return None


def _is_dirty(top: Path, own: Path, common: Path, commit: str) -> bool:
    kind = ("1", "[extensions]\nobjectFormat = sha256\n") if len(commit) == 64 else ("0", "")
    with tempfile.TemporaryDirectory(prefix="ganlab-git-") as name:
        made = Path(name)
        (made / "refs").mkdir()
        (made / "HEAD").write_text(f"{commit}\n")
        (made / "config").write_text(f"[core]\nrepositoryFormatVersion = {kind[0]}\n{kind[1]}")
        variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_DIR": name,
            "GIT_WORK_TREE": str(top),
            "GIT_INDEX_FILE": str(own / "index"),
            "GIT_OBJECT_DIRECTORY": str(common / "objects"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            # Reading the state must not take the lock that a commit in progress needs.
            "GIT_OPTIONAL_LOCKS": "0",
        }
        done = run_process(
            ["git", "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"],
            cwd=name,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
    return bool(done.stdout.strip())


def _line(folder: Path, name: str) -> str:
    return read_inside(folder, name, most=_LARGEST).decode().strip()
