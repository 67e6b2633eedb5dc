"""Names in full and in short: `constraints.gradient_penalty.weight` is `weight` if no other name ends so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ganlab.commands import listed, one_meant
from ganlab.errors import ConfigError, nearest
from ganlab.runs import short

_SEPARATOR = re.compile(r"[./]")
_MOST_PARTS = 8


def shortened(names: Sequence[str]) -> dict[str, str]:
    """The shortest endings of names that are unique among them.

    Args:
        names: In full, for example `constraints.gradient_penalty.weight` or `critic/loss`.

    Returns:
        The short ones by the full ones: whole parts, as few as it takes.
    """
    often = Counter(end for name in names for end in {*_endings(name), short(name)})
    return {name: next((end for end in _endings(name) if often[end] == 1), name) for name in names}


def resolve(name: str, known: Iterable[str], kind: str) -> str:
    """The full name that a name, perhaps a short one, means.

    Args:
        name: As given: in full, an ending of it, or as in a configuration's label.
        known: Names in full.
        kind: What they are, for messages: `setting`.

    Raises:
        ConfigError: It means no name, or more than one.
    """
    known = sorted(known)
    # As runs of equal optimizers name their settings, or a file the parts of an experiment.
    rest = _SEPARATOR.split(name, maxsplit=1)[-1] if kind == "setting" else name
    if found := one_meant(name, known, f"The {kind} {name!r}") or one_meant(rest, known, f"The {kind} {name!r}"):
        return found
    near = nearest(name, known) or nearest(name, {end for full in known for end in _endings(full)})
    raise ConfigError(f"The runs have no {kind} {name!r}.{near or f' They have: {listed(known, 12)}.'}")


def _endings(name: str) -> list[str]:
    """The endings of a name that are a few whole parts, from the shortest, and the name itself."""
    starts = [match.end() for match in _SEPARATOR.finditer(name)][-_MOST_PARTS:]
    return [name[start:] for start in reversed(starts)] + [name]
