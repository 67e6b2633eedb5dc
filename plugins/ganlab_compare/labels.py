"""Names in full and in short: `constraints.gradient_penalty.weight` is `weight` if no other name ends so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ganlab.commands import listed, one_meant
from ganlab.errors import ConfigError, nearest
from ganlab.runs import Scalar, described, short

_SEPARATOR = re.compile(r"[./]")
_MOST_PARTS = 8

# Settings beyond these are not looked at for short labels.
_MOST_SETTINGS = 60


def shortened(names: Sequence[str]) -> dict[str, str]:
    """The shortest endings of names that are unique among them.

    Args:
        names: In full, for example `constraints.gradient_penalty.weight` or `critic/loss`.

    Returns:
        The short ones by the full ones: whole parts, as few as it takes.
    """
    often = Counter(end for name in names for end in {*_endings(name), short(name)})
    return {name: next((end for end in _endings(name) if often[end] == 1), name) for name in names}


def without_common(names: Sequence[str]) -> dict[str, str]:
    """Names without the words and parts of paths that all of them have, or in full if they would not differ then."""
    words = {name: re.findall(r"[^/,\s]+[/,\s]*", name) for name in names}
    common = set.intersection(*({word.strip("/, ") for word in of} for of in words.values())) if words else set()
    left = {name: "".join(word for word in of if word.strip("/, ") not in common) for name, of in words.items()}
    left = {name: rest.strip("/, ") or name for name, rest in left.items()}
    return left if len(set(left.values())) == len(left) else {name: name for name in names}


def telling(rows: Sequence[Mapping[str, Scalar]], names: Sequence[str]) -> list[str]:
    """As few of the settings `names` as tell rows apart, the first ones rather than later ones."""

    def groups(of: Sequence[str]) -> int:
        return len({tuple(row.get(name) for name in of) for row in rows})

    kept = list(names[:_MOST_SETTINGS])
    wanted = groups(kept)
    for name in reversed(kept):
        rest = [one for one in kept if one != name]
        kept = rest if groups(rest) == wanted else kept
    return kept


def short_label(row: Mapping[str, Scalar], names: Mapping[str, str]) -> str:
    """A row by its values of some settings, given with their short names: `gradient_penalty width=64`."""
    words = {name: described(row, [name]) for name in names}
    return " ".join(
        names[name] + word.removeprefix(short(name)) if word.startswith(f"{short(name)}=") else word
        for name, word in words.items()
        if word
    )


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
    raise ConfigError(f"The runs have no {kind} {name!r}.{near or f' They have: {listed(known, 12)}.' * bool(known)}")


def _endings(name: str) -> list[str]:
    """The endings of a name that are a few whole parts, from the shortest, and the name itself."""
    starts = [match.end() for match in _SEPARATOR.finditer(name)][-_MOST_PARTS:]
    return [name[start:] for start in reversed(starts)] + [name]
