"""Writes the tables of docs/plugin-list.md and docs/versions.md from docs/plugins.toml and tools/matrix.toml.

python docs/tables.py
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_MARK = "<!-- The rest is written by docs/tables.py. -->\n"


def pages() -> dict[Path, str]:
    """The pages, as they should be."""
    plugins = tomllib.loads((ROOT / "docs" / "plugins.toml").read_text())["plugin"]
    cells = tomllib.loads((ROOT / "tools" / "matrix.toml").read_text())["cell"]
    others = [plugin for plugin in plugins if not plugin.get("part")]
    parts = [plugin for plugin in plugins if plugin.get("part")]
    listed = f"## Part of ganlab\n\n{_plugins(parts)}\n## By others\n\n"
    listed += _plugins(others) if others else "None yet. Yours may be the first.\n"
    rows = ((c["python"], c["tensorflow"], c.get("with", "newest"), c.get("ran", ""), c["result"]) for c in cells)
    tried = _table(("Python", "TensorFlow", "the rest", "installed", "result"), rows)
    texts = {ROOT / "docs" / "plugin-list.md": listed, ROOT / "docs" / "versions.md": tried}
    return {path: path.read_text().partition(_MARK)[0] + f"{_MARK}\n{text}" for path, text in texts.items()}


def _plugins(plugins: Iterable[Mapping[str, Any]]) -> str:
    rows = ((f"[`{plugin['name']}`]({plugin['url']})", plugin["kind"], plugin["does"]) for plugin in plugins)
    return _table(("plugin", "kind", "what it does"), sorted(rows))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
        print(f"Wrote {path}")
