"""Names of runs that say what differs between them, from the settings in run.json."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ganlab.support.paths import as_name
from ganlab.support.terminal import line

Scalar = bool | int | float | str
Settings = Mapping[str, Scalar]

SEED = "experiment.seed"
_CONSTRAINTS = "constraints"

# What `new_run_path` calls a run that nobody named.
_UNNAMED = re.compile(r"\d{8}-\d{6}-s(\d+)-([0-9a-f]{4})")

# Parts whose value alone says what it is; an `adam` could be the critic's or the generator's.
_PLAIN = (_CONSTRAINTS, "dataset", "architecture", "loss", "strategy")

# Lists of runs are narrow, and a folder's name must be shorter than 256 bytes.
_LONGEST, _LONGEST_BYTES = 80, 200


def differing(settings: Iterable[Settings]) -> list[str]:
    """The settings that tell runs apart, all but the seed.

    A parameter of a part that only some runs have, such as the weight of a penalty, counts where it differs between
    those: that the others lack the part shows in the setting that names parts.

    Args:
        settings: Of each run, flat, as in run.json: `{"constraints": "r1", "constraints.r1.weight": 10.0, ...}`. What
            is None is not there; a run of which nothing is known does not count.

    Returns:
        Their names: constraints first, then their parameters, then the others as the runs have them.
    """
    tables = [table for table in settings if table]
    names = list(dict.fromkeys(name for table in tables for name in table if name != SEED))
    found = [name for name in names if len(_values(name, tables)) > 1]
    return sorted(found, key=lambda name: (name != _CONSTRAINTS, not name.startswith(f"{_CONSTRAINTS}.")))


def short(name: str) -> str:
    """A setting's name in short: `gradient_penalty.weight`, `critic.adam.beta_1`, `batch_size`."""
    scope, _, selector = name.rpartition("/")
    _, _, rest = selector.partition(".")
    return f"{scope}.{rest}".replace("/", ".") if scope and rest else rest or selector


def described(settings: Settings, names: Sequence[str]) -> str:
    """One run's values of some settings in few words: `gradient_penalty.weight=10 batch_size=64`.

    Args:
        settings: The run's, flat.
        names: Which to say, such as those of `differing`. What the run does not have is left out.
    """
    values = {name: setting(settings, name) for name in names}
    said = [short(name) for name, value in values.items() if value is not None]
    words = []
    for name, value in values.items():
        if value is None:
            words += ["unconstrained"] if settings and name == _CONSTRAINTS else []
        elif name not in _PLAIN:
            words.append(f"{short(name)}={_text(value)}")
        elif not any(other.startswith(f"{value}.") for other in said):
            words.append(_text(value))  # else "gradient_penalty.weight=10", which follows, says it
    return " ".join(map(line, words))


def setting(settings: Settings, name: str) -> Scalar | None:
    """One run's value of a setting, None where it has none.

    A run whose optimizers are alike has `optimizers.adam.beta_1`, one whose are not has
    `critic_optimizer/optimizers.adam.beta_1`: asked for the latter, the former gives what it has for both.
    """
    return settings.get(name, settings.get(name.rpartition("/")[2]))


def run_names(runs: Mapping[Path, Settings], taken: Mapping[Path, str] | None = None) -> dict[Path, str]:
    """Names for runs that are looked at together: unique, and each good for a folder's name.

    A run is called by the folders below that which all of them share, as someone chose them; where nobody named a run,
    by what differs between it and the others like it in its folder: `gradient_penalty.weight=10 s0`.

    Args:
        runs: The flat settings of each run; empty where they are not known.
        taken: Names given before, which stay.

    Returns:
        The name of each run. What would be the name of two has the last digits of the run's own folder too.
    """
    given = {path: name for path, name in (taken or {}).items() if path in runs}
    base = Path(os.path.commonpath([path.parent for path in runs])) if runs else Path()
    alike: dict[Path, list[Path]] = {}
    for path in runs:
        if _UNNAMED.fullmatch(path.name):
            alike.setdefault(path.parent, []).append(path)
    told = {folder: differing(runs[path] for path in paths) for folder, paths in alike.items()}
    wanted = {}
    for path, settings in runs.items():
        last, where = [path.name], path.parent.relative_to(base).parts
        if _UNNAMED.fullmatch(path.name):
            said = described(settings, told[path.parent]) or ("" if where else path.parent.name)
            last = [said[: _LONGEST - 1] + "…" if len(said) > _LONGEST else said, _seed(path, settings)]
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


def _values(name: str, tables: Sequence[Settings]) -> set[tuple[bool, Scalar | None]]:
    """The values of a setting in the runs that could have it: None where it is not set there."""
    part, dot, _ = name.rpartition(".")
    prefixes = (f"{part}.", f"{part.rpartition('/')[2]}.")
    having = [table for table in tables if not dot or any(other.startswith(prefixes) for other in table)]
    return {(isinstance(value, bool), value) for value in (setting(table, name) for table in having)}


def _text(value: Scalar) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text.replace(", ", "+").replace("/", ".")
