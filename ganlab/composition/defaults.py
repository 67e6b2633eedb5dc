"""Defaults for the parts that an experiment leaves out, and datasets made of plain data; both come from plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ganlab.composition.parts import DEFAULTED, PARTS
from ganlab.interfaces import Dataset, Loss
from ganlab.interfaces.loss import has_own
from ganlab.plugins.manager import component, current
from ganlab.plugins.plugin_errors import plugin_code


def default_of(part: str) -> str:
    """The name of the component that stands for a part that is left out; empty if no plugin has one."""
    name = ""
    for plugin, call in current().calls("ganlab_defaults"):
        with plugin_code(plugin, "ganlab_defaults"):
            name = call().get(part, name)
    return name


def completed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an experiment with what is left out, and with datasets for data."""
    whole = dict(settings)
    for part in DEFAULTED:
        loss = whole.get("loss")
        if part == "critic_optimizer" and isinstance(loss, Loss) and not has_own(loss, "critic"):
            continue
        if whole.get(part) is None and (name := default_of(part)):
            whole[part] = component(PARTS[part], name)()
    for part in ("dataset", "source"):
        if not isinstance(whole.get(part), (Dataset, type(None))):
            whole[part] = _dataset(whole[part])
    return whole


def _dataset(data: Any) -> Any:
    for plugin, call in current().calls("ganlab_data"):
        with plugin_code(plugin, "ganlab_data"):
            dataset = call(data=data)
        if dataset is not None:
            return dataset
    return data
