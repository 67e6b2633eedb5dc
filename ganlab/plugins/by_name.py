"""The components of a kind as names of a module: `from ganlab.constraints import GradientPenalty`."""

from __future__ import annotations

from collections.abc import Callable

from ganlab.errors import nearest
from ganlab.plugins.manager import component, current
from ganlab.plugins.recipes import Factory


def by_name(kind: str) -> tuple[Callable[[str], Factory], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of the module of a kind.

    A component has the name of its class or function there, and the one of experiment files, too.
    """

    def offered() -> dict[str, str]:
        names: dict[str, str] = {}
        for (of, name), one in current().components.items():
            if of == kind and "." not in name:
                called = getattr(one.factory.make, "__name__", name)
                names.setdefault(called if called.isidentifier() and called[0] != "_" else name, name)
        return names

    def get(name: str) -> Factory:
        if name.startswith("_"):
            raise AttributeError(f"module 'ganlab.{kind}' has no attribute {name!r}")
        names, known = offered(), current()
        registered = names.get(name, name)
        if registered not in names.values() and (kind, registered) not in known.components:
            raise AttributeError(f"No plugin offers ganlab.{kind}.{name}.{nearest(name, names)}{known.absent()}")
        return component(kind, registered)

    return get, lambda: sorted(offered())
