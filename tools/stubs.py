"""Writes plugins/ganlab_builtin/KIND/__init__.pyi: the components that editors offer after `from ganlab.KIND import`.

    python tools/stubs.py

`ganlab.KIND` itself has the components of all plugins in use, when Python runs.
"""

from __future__ import annotations

from pathlib import Path

from ganlab.plugins.manager import KINDS, current

FOLDER = Path(__file__).resolve().parents[1] / "plugins" / "ganlab_builtin"


def stub(kind: str) -> str:
    """The text of a kind's stub, from the registry."""
    made = [one.factory.make for (of, _), one in current().components.items() if of == kind]
    own = sorted((make.__module__, make.__name__) for make in made if make.__module__.startswith("ganlab_builtin."))
    return "".join(f"from {module} import {name} as {name}\n" for module, name in own)


if __name__ == "__main__":
    for kind in KINDS:
        (FOLDER / kind / "__init__.pyi").write_text(f"# Made by tools/stubs.py.\n{stub(kind)}")
