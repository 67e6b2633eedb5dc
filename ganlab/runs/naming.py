"""Describes runs by the settings in which they differ, read from run.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ganlab.support.terminal import line

Scalar = bool | int | float | str
Settings = Mapping[str, Scalar]

# The most settings of a run that are compared with another's, ten times as many as any experiment has.
MOST_SETTINGS = 2000

SEED = "experiment.seed"
_CONSTRAINTS = "constraints"

# Parts whose value is clear without the part's name; an `adam` could be the critic's or the generator's.
_SELF_EXPLANATORY = (_CONSTRAINTS, "dataset", "architecture", "loss", "strategy")


def differing(settings: Iterable[Settings]) -> list[str]:
    """The settings in which runs differ, except the seed.

    A parameter of a part that only some runs have, for example the weight of a penalty, counts if it differs among
    those runs. That the other runs lack the part shows in the setting that names the part.

    Args:
        settings: The flat settings of each run, as in run.json: `{"constraints": "r1", "constraints.r1.weight": 10.0,
            ...}`. None means not set; a run without any settings does not count.

    Returns:
        Their names: constraints first, then the parameters of constraints, then the others in the order of the runs.
    """
    tables = [(table, _parts(table)) for table in settings if table]
    names = list(dict.fromkeys(name for table, _ in tables for name in table if name != SEED))
    known = ((name, [table[name] for table, _ in tables if name in table]) for name in names)
    # Most have one value in all runs, which takes less time to see.
    others = [name for name, values in known if len(values) < len(tables) or len(set(map(_distinct, values))) > 1]
    several = [name for name in others if len(_values(name, tables)) > 1]
    return sorted(several, key=lambda name: (name != _CONSTRAINTS, not name.startswith(f"{_CONSTRAINTS}.")))


def short(name: str) -> str:
    """Shortens a setting's name: `gradient_penalty.weight`, `critic.adam.beta_1`, `batch_size`."""
    scope, _, selector = name.rpartition("/")
    _, _, rest = selector.partition(".")
    return f"{scope}.{rest}".replace("/", ".") if scope and rest else rest or selector


def described(settings: Settings, names: Sequence[str]) -> str:
    """Describes a run by its values of some settings: `gradient_penalty.weight=10 batch_size=64`.

    Args:
        settings: The run's flat settings.
        names: The settings to include, for example those of `differing`. Those that the run lacks are left out.
    """
    values = {name: setting(settings, name) for name in names}
    shortened = [short(name) for name, value in values.items() if value is not None]
    words = []
    for name, value in values.items():
        if value is None:
            words += ["unconstrained"] if settings and name == _CONSTRAINTS else []
        elif name not in _SELF_EXPLANATORY:
            words.append(f"{short(name)}={_text(value)}")
        elif not any(other.startswith(f"{value}.") for other in shortened):
            words.append(_text(value))  # otherwise "gradient_penalty.weight=10" follows and names it
    return " ".join(map(line, words))


def setting(settings: Settings, name: str) -> Scalar | None:
    """A run's value of a setting; None if it is not set.

    A run with equal optimizers has `optimizers.adam.beta_1`; one with different optimizers has
    `critic_optimizer/optimizers.adam.beta_1`. Asked for the second name, the first run returns the shared value.
    """
    return settings.get(name, settings.get(name.rpartition("/")[2]))


def _parts(settings: Settings) -> set[str]:
    """The parts that a run has settings of, and the names of those without: run.json lacks settings that are None."""
    parts = {name.rpartition(".")[0] for name in settings}
    words = {word for name, value in settings.items() if "." not in name for word in str(value).split(", ")}
    return parts | (words - {part.rpartition(".")[2] for part in parts})


def _values(name: str, tables: Sequence[tuple[Settings, set[str]]]) -> set[tuple[bool, Scalar | None]]:
    """The values of a setting in the runs that could have it, given with their parts; None stands for not set."""
    part, dot, _ = name.rpartition(".")
    names = {part, part.rpartition("/")[2], part.rpartition(".")[2]}
    return {_distinct(setting(table, name)) for table, parts in tables if not dot or names & parts}


def _distinct(value: Scalar | None) -> tuple[bool, Scalar | None]:
    """The value as different from another: True is not 1."""
    return isinstance(value, bool), value


def _text(value: Scalar) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text.replace(", ", "+").replace("/", ".")
