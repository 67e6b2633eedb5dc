"""The components of a kind as names of a module: `from ganlab.constraints import GradientPenalty`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ganlab.errors import nearest
from ganlab.plugins.manager import component, current


def by_name(kind: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a kind's module: names of classes and functions, and those of experiment files."""

    def offered() -> dict[str, str]:
        names: dict[str, str] = {}
        for (of, name), one in current().components.items():
            if of == kind and "." not in name:
                called = getattr(one.factory.make, "__name__", name)
                names.setdefault(called if called.isidentifier() and called[0] != "_" else name, name)
        return names

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(offered())
        names = {} if name.startswith("_") else offered()
        registered = names.get(name, name)
        if registered not in names.values():
            near = nearest(name, names) + current().absent() if names else ""
            raise AttributeError(f"No plugin offers ganlab.{kind}.{name}.{near}")
        return component(kind, registered)

    return get, lambda: sorted(offered())
