"""The charts of TensorBoard's Custom Scalars tab: runs side by side, then each metric with its replicas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tensorboard.plugins.custom_scalar import layout_pb2

_LOSSES, _WASSERSTEIN, _PENALTY, _SLOPES = "losses", "Wasserstein estimate", "penalty", "slopes"
_CONSTRAINTS, _EVALUATION, _DIAGNOSTICS, _REPLICAS = "constraints", "evaluation", "diagnostics", "replicas"
_CATEGORIES = (_LOSSES, _WASSERSTEIN, _PENALTY, _SLOPES, _CONSTRAINTS, _EVALUATION, _DIAGNOSTICS, _REPLICAS)

# The order within a category.
_FIRST = ("critic", "generator", "constraints")

# Metrics that mean the same for every constraint, so that runs with different constraints share a chart.
_SHARED = ("slope", "steepest", "lipschitz_bound")


def layout(tags: Iterable[str], figures: Iterable[str] = ()) -> Any:
    """The charts of a run.

    TensorBoard merges the layouts of all runs that it shows: categories by title, in each the charts that are not yet
    there. So a chart depends on its title alone, never on the number of replicas. Every run has every category, even if
    empty, because TensorBoard loses the charts that a third run adds to a category that the first run lacks.

    Args:
        tags: Metrics with a value for every replica, as in records, without `replica/<i>/`.
        figures: Tags of the run as a whole, for example `evaluation/mode_coverage/modes`.

    Returns:
        A `tensorboard.plugins.custom_scalar.layout_pb2.Layout`. Charts of the category `replicas` draw a metric's
        reduced line and each replica's, all others only the reduced line.
    """
    tags = list(dict.fromkeys(tags))
    charts: dict[str, dict[str, list[str]]] = {category: {} for category in _CATEGORIES}
    for tag in (*tags, *figures):
        category, title, pattern = _place(tag)
        charts[category][title] = [f"^{pattern}$"]
    charts[_REPLICAS] = {tag: [f"^{re.escape(tag)}$", rf"^replica/\d+/{re.escape(tag)}$"] for tag in tags}
    return layout_pb2.Layout(category=[_category(title, charts[title]) for title in _CATEGORIES])


def _place(tag: str) -> tuple[str, str, str]:
    """The category, the title and the regular expression of the chart that compares a metric over runs."""
    kind, _, rest = tag.partition("/")
    metric = rest.rpartition("/")[2]
    if kind == "constraints" and rest.count("/") == 1 and metric in _SHARED:
        return _SLOPES, metric, f"constraints/[^/]+/{metric}"
    category = {
        "critic/wasserstein": _WASSERSTEIN,
        "critic/penalty": _PENALTY,
        "constraints": _CONSTRAINTS,
        "generator_constraints": _CONSTRAINTS,
        "network_constraints": _CONSTRAINTS,
        "evaluation": _EVALUATION,
        "diagnostics": _SLOPES if rest.startswith("slopes/") else _DIAGNOSTICS,
    }
    return category.get(tag, category.get(kind, _LOSSES)), tag, re.escape(tag)


def _category(title: str, charts: Mapping[str, list[str]]) -> Any:
    content = layout_pb2.MultilineChartContent
    drawn = [layout_pb2.Chart(title=name, multiline=content(tag=charts[name])) for name in sorted(charts, key=_order)]
    return layout_pb2.Category(title=title, chart=drawn)


def _order(tag: str) -> tuple[int, str]:
    kind = tag.partition("/")[0]
    return (_FIRST.index(kind) if kind in _FIRST else len(_FIRST), tag)
