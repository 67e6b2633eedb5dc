"""Names runs by the settings in which they differ."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ganlab.files import as_name
from ganlab.runs import SEED, Settings, described, differing

# The form of the names that `new_run_path` gives to runs without a chosen name.
_UNNAMED = re.compile(r"\d{8}-\d{6}-s(\d+)-([0-9a-f]{4})")

# Tables of runs are narrow, and a folder's name must be shorter than 256 bytes.
_LONGEST, _LONGEST_BYTES = 80, 200


def run_names(runs: Mapping[Path, Settings], taken: Mapping[Path, str] | None = None) -> dict[Path, str]:
    """Names for runs that are shown together: unique, and each valid as the name of a folder.

    A run is named by its path below the folder that all runs share. If nobody chose a name for the run, the last part
    is replaced by the settings that distinguish it from other unnamed runs in its folder, for example
    `gradient_penalty.weight=10 s0`.

    Args:
        runs: The flat settings of each run; empty if they are unknown.
        taken: Names given before, which stay.

    Returns:
        The name of each run. If two runs would have the same name, the last digits of their folders are appended.
    """
    given = {path: name for path, name in (taken or {}).items() if path in runs}
    base = Path(os.path.commonpath([path.parent for path in runs])) if runs else Path()
    alike: dict[Path, list[Path]] = {}
    for path in runs:
        if _UNNAMED.fullmatch(path.name):
            alike.setdefault(path.parent, []).append(path)
    distinguishing = {folder: differing(runs[path] for path in paths) for folder, paths in alike.items()}
    wanted = {}
    for path, settings in runs.items():
        last, where = [path.name], path.parent.relative_to(base).parts
        if _UNNAMED.fullmatch(path.name):
            label = described(settings, distinguishing[path.parent]) or ("" if where else path.parent.name)
            last = [label[: _LONGEST - 1] + "…" if len(label) > _LONGEST else label, _seed(path, settings)]
        name = " ".join(part for part in (*where, *last) if part)
        wanted[path] = as_name(name.encode(errors="surrogatepass")[:_LONGEST_BYTES].decode(errors="ignore"))
    often, used = Counter(wanted.values()), set(given.values())
    for path in sorted(runs.keys() - given.keys()):
        name = wanted[path]
        if often[name] > 1 or name in used:
            name += f" {as_name(path.name[-4:])}"
        while name in used:
            name += "'"
        given[path] = name
        used.add(name)
    return given


def _seed(path: Path, settings: Settings) -> str:
    unnamed = _UNNAMED.fullmatch(path.name)
    seed = settings.get(SEED, unnamed[1] if unnamed else None)
    return "" if seed is None else f"s{seed}"
