"""The names that a name means: settings and metrics may be given in short, or as a label or a folder has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SEPARATOR = re.compile(r"[./]")
# A scope that experiment files often give to an optimizer, `critic`, stands for the part, `critic_optimizer`.
_OPTIMIZER = "_optimizer"


def meant(name: str, known: Mapping[str, str] | Iterable[str]) -> list[str]:
    """The names that a name means, sorted: one if it is clear, several if it is ambiguous, none if it is unknown.

    A name means itself; else those that end in it; else those that have all of its words in order, the last one at the
    end. `.` and `/` both end a word, so that `critic.adam.beta_1` means `critic_optimizer/optimizers.adam.beta_1`.

    Args:
        name: As a file, a label or a folder has it.
        known: The names; or by each spelling of a name, the name.
    """
    known = known if isinstance(known, Mapping) else {full: full for full in known}
    if name in known:
        return [known[name]]
    words = _SEPARATOR.split(name)
    spelled = {spelling: _SEPARATOR.split(spelling) for spelling in known}
    ending = {known[spelling] for spelling, parts in spelled.items() if parts[-len(words) :] == words}
    inside = ending or {known[spelling] for spelling, parts in spelled.items() if _within(words, parts)}
    return sorted(inside)


def _within(words: list[str], parts: list[str]) -> bool:
    """Whether words stand among others in this order, the last one at the end."""
    rest = iter(parts)
    return words[-1] == parts[-1] and all(any(part in (word, word + _OPTIMIZER) for part in rest) for word in words)
