"""Whether experiments log a metric, as far as their components explain what they log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ganlab.composition import LISTS
from ganlab.config.metric_help import EXPLAINING_PARTS, NUMBERS_OF_CORE, figures_of, means, nearest_metric
from ganlab.config.registry import Names
from ganlab.errors import ConfigError, nearest
from ganlab.interfaces import Direction
from ganlab.plugins.manager import current
from ganlab.plugins.recipes import Recipe, numbered
from ganlab.support.names import one_meant

# The prefix of metrics that need no explanation.
_SCHEDULES = "schedules"


def better_direction(tag: str, recipes: Sequence[Recipe]) -> Direction | None:
    """Which values of a metric are better, as the evaluator of some experiments that logs it declares; else None."""
    for of, selector in (component for recipe in recipes for component in _components(recipe)):
        figure = tag.removeprefix(f"{of}/")
        if of.startswith("evaluation/") and figure != tag:
            ways = getattr(Names(current()).make(selector), "better", None)
            return ways.get(figure) if isinstance(ways, Mapping) else None
    return None


def check_logged(tag: str, recipes: Sequence[Recipe]) -> str:
    """A metric in full; one that none of several experiments logs is refused.

    Explanations are optional, so one that a component does not explain passes, unless it is spelt nearly like one that
    the component does.

    Args:
        tag: The metric, as metrics.jsonl has it, or the end of its name.
        recipes: The experiments.

    Raises:
        ConfigError: No part of any of them logs it; the message suggests one that is logged.
    """
    names = Names(current())
    begin, _, rest = tag.partition("/")
    if tag in NUMBERS_OF_CORE or (begin == _SCHEDULES and rest):
        return tag
    logged = {f"{of}/": figures_of(selector, names) for recipe in recipes for of, selector in _components(recipe)}
    for of, figures in logged.items():
        figure = tag.removeprefix(of)
        if figure not in ("", tag) and (any(means(known, figure) for known in figures) or not nearest(figure, figures)):
            return tag
    known = {*NUMBERS_OF_CORE, *(f"{of}{figure}" for of, figures in logged.items() for figure in figures)}
    if whole := one_meant(tag, known, f"The metric {tag!r}"):
        return whole
    ends = [(of, figures) for of, figures in logged.items() if rest and of.endswith(f"/{begin}/")]
    fits = any(means(figure, tag) for figures in logged.values() for figure in figures)
    if len(ends) == 1 and not fits and not nearest(rest, ends[0][1]):
        return ends[0][0] + rest
    raise ConfigError(
        f"The experiment logs no metric {tag!r}.{nearest_metric(tag, known)} A metric is one of "
        f"{', '.join(NUMBERS_OF_CORE)}, or of a part of the experiment, for example a figure of its evaluators."
    )


def _components(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """The prefix of the metrics of each component that explains its own, and its selector."""
    for prefix, part in EXPLAINING_PARTS.items():
        setting = recipe.arguments.get(part)
        # Whether it is a list of components is checked when the experiment is made.
        items = [setting] if part not in LISTS else setting if isinstance(setting, (list, tuple)) else []
        recipes = [item for item in items if isinstance(item, Recipe)]
        for name, item in zip(numbered(item.name for item in recipes), recipes, strict=True):
            yield f"{prefix}/{name}", item.selector
