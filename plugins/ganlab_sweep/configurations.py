"""The experiments of a sweep: one for each combination of settings that makes a difference."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganlab import Choices, Range
from ganlab.commands import Recipe, load_variant, render
from ganlab.errors import ConfigError
from ganlab.runs import short
from ganlab_sweep.space import Space

# The longest folder name that is readable in a list.
_LONGEST = 80
_DIGITS = 8
_REFERENCE = re.compile(r"@((?:\w+/)*)(?:\w+\.)*(\w+)(?:\(\s*\))?")

# Up to this many combinations are all read before a search begins, which takes some seconds.
_CHECKED = 256


@dataclass(frozen=True)
class Configuration:
    """One experiment of a sweep, which is trained once for each seed.

    Attributes:
        name: The settings that differ, in a short form that can name a folder.
        settings: The value of each setting that has an effect in it.
        text: The whole experiment, as a run writes its config.gin.
    """

    name: str
    settings: Mapping[str, str]
    text: str


class Configurations:
    """Makes the configurations of one sweep, each once.

    A setting of a part that an experiment does not have is left out of it, for example the weight of another
    constraint's penalty. Settings that then give the same experiment are one configuration.

    Attributes:
        unused: Settings that had no effect in any configuration so far, each with the reason.
        recipes: The experiments that were read.
    """

    def __init__(
        self, sources: Sequence[str | Path], params: Sequence[str], names: Sequence[str], known: Iterable[Configuration]
    ) -> None:
        """Takes the parts that all configurations share.

        Args:
            sources: Experiment files.
            params: Overrides of the experiment files.
            names: The settings that name a configuration's folder, where they have an effect.
            known: Configurations that the sweep already has.
        """
        self._sources, self._params = sources, params
        self._short = _shortened(names)
        self._made = {configuration.text: configuration for configuration in known}
        self.unused: dict[str, str] | None = None
        self.recipes: list[Recipe] = []

    @property
    def made(self) -> list[Configuration]:
        """All configurations, those known before first."""
        return list(self._made.values())

    def of(self, settings: Mapping[str, str]) -> Configuration:
        """The configuration that settings give.

        Args:
            settings: A value for each name, as an experiment file has it.

        Raises:
            GanlabError: The experiment is invalid.
        """
        variant = load_variant(self._sources, self._params, settings)
        before = variant.unused if self.unused is None else self.unused
        self.unused = {key: reason for key, reason in before.items() if key in variant.unused}
        text = render(variant.recipe)
        self.recipes.append(variant.recipe)
        if text not in self._made:
            self._made[text] = Configuration(self._name(variant.used), dict(variant.used), text)
        return self._made[text]

    def _name(self, settings: Mapping[str, str]) -> str:
        words = [f"{self._short[name]}={_word(value)}" for name, value in settings.items() if name in self._short]
        name = ",".join(words) or "base"
        used = {other.name.casefold() for other in self._made.values()}  # some file systems ignore case
        if len(name) <= _LONGEST and name.casefold() not in used:
            return name
        digest = hashlib.sha256(json.dumps(sorted(settings.items())).encode()).hexdigest()
        return f"{name[: _LONGEST - _DIGITS - 1]}~{digest[:_DIGITS]}"


def in_full(name: str, settings: Mapping[str, str]) -> str:
    """The name of a configuration, with all its settings where it is cut."""
    return name if "~" not in name else f"{name} ({', '.join(f'{each}={value}' for each, value in settings.items())})"


def varying(space: Space) -> list[str]:
    """The settings that name a sweep's configurations: those with several values; all of them if none has."""
    several = [name for name, axis in space.items() if not isinstance(axis, Choices) or len(axis.values) > 1]
    return several or list(space)


def check(configurations: Configurations, space: Space) -> None:
    """Reads the experiments of a space before any is trained: all of them, or some hundreds if there are more.

    Of a range, the two ends are tried.

    Raises:
        GanlabError: An experiment is invalid, or a setting has no effect in any of them.
    """
    ranges = any(isinstance(axis, Range) for axis in space.values())
    for settings in _combinations(space):
        try:
            configurations.of(settings)
        except ConfigError as error:
            if not ranges:
                raise
            raise ConfigError(f"{error} Both ends of each range are tried before a trial starts.") from None
    check_used(configurations)


def check_used(configurations: Configurations) -> None:
    """Refuses a line that had no effect in any configuration.

    Raises:
        ConfigError: There is such a line; the message has the reason.
    """
    for reason in (configurations.unused or {}).values():
        raise ConfigError(f"In every configuration of the sweep, {reason}")


def _combinations(space: Space) -> Iterator[dict[str, str]]:
    values = [
        tuple(axis.values)
        if isinstance(axis, Choices)
        else tuple(str(int(end)) if axis.integer else repr(end) for end in (axis.low, axis.high))
        for axis in space.values()
    ]
    if math.prod(map(len, values)) <= _CHECKED:
        drawn: Iterable[tuple[str, ...]] = itertools.product(*values)
    else:
        # Each value of each setting at least once, combined at random; the same combinations every time.
        generator = random.Random(0)
        rounds = max(_CHECKED, max(map(len, values)))
        drawn = zip(*(_shuffled(axis, rounds, generator) for axis in values), strict=True)
    for combination in drawn:
        yield dict(zip(space, combination, strict=True))


def _shuffled(values: Sequence[str], length: int, generator: random.Random) -> list[str]:
    repeated = [values[number % len(values)] for number in range(length)]
    generator.shuffle(repeated)
    return repeated


def _shortened(names: Sequence[str]) -> dict[str, str]:
    ends = [short(name) for name in names]
    return {
        name: word if ends.count(word) == 1 else name.replace("/", ".") for name, word in zip(names, ends, strict=True)
    }


def _word(value: str) -> str:
    """A value as part of a folder's name: `[@constraints.r1(), @constraints.spectral_norm()]` is `r1+spectral_norm`."""
    text = _REFERENCE.sub(lambda match: match[1].replace("/", ".") + match[2], value)
    text = "+".join(part.strip() for part in text.strip("[]() ").rstrip(", ").split(","))
    text = re.sub(r"[^\w.+=-]+", "-", re.sub(r"['\"]", "", text), flags=re.ASCII)
    return text or "none"
