"""The names that a name means: settings and metrics may be given in short, or as a label or a folder has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ganlab.errors import ConfigError

_SEPARATOR = re.compile(r"[./]")


def meant(name: str, known: Mapping[str, str] | Iterable[str]) -> list[str]:
    """The names that a name means, sorted: itself, else those that end in it, else those with its words in order.

    A dot and a slash both end a word, and the scope `critic` stands for `critic_optimizer`: `critic.adam.beta_1` means
    `critic_optimizer/optimizers.adam.beta_1`. `known` are the names, or by each spelling of a name, the name.
    """
    known = known if isinstance(known, Mapping) else {full: full for full in known}
    words, spelled = _SEPARATOR.split(name), {spelling: _SEPARATOR.split(spelling) for spelling in known}
    ending = {known[spelling] for spelling, parts in spelled.items() if parts[-len(words) :] == words}
    within = ending or {known[spelling] for spelling, parts in spelled.items() if _is_within(words, parts)}
    return [known[name]] if name in known else sorted(within)


def one_meant(name: str, known: Mapping[str, str] | Iterable[str], begin: str) -> str | None:
    """The one name that a name means; None if it means none. An error about several begins with `begin`."""
    found = meant(name, known)
    if len(found) > 1:
        raise ConfigError(f"{begin} may be {' or '.join(found)}: give one of them in full.")
    return found[0] if found else None


def _is_within(words: list[str], parts: list[str]) -> bool:
    rest = iter(parts)
    return words[-1] == parts[-1] and all(any(part in (word, f"{word}_optimizer") for part in rest) for word in words)
