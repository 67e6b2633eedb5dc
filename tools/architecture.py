"""Draws ganlab's packages from its code, layers as pyproject.toml has them, and counts their lines.

    python tools/architecture.py
    python tools/architecture.py --check

Writes docs/architecture.svg. With --check it prints the lines of each package beside its budget ([tool.ganlab.lines] in
pyproject.toml), and exits with 1 if one is exceeded or the picture does not match the code. Imports that others imply
are left out: if A imports B and B imports C, A's import of C adds nothing. Arrows lead to the next row; imports from
further below are written into the box. Needs import-linter, which enforces the layers (`lint-imports`).
"""

from __future__ import annotations

import argparse
import ast
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "architecture.svg"

_WIDTH, _MARGIN, _GAP = 1000, 24, 18
_HEIGHT, _SPACE = 78, 30
_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .name { font-weight: 600; font-size: 14px }
  .uses { fill: #656d76; font-size: 11px }
  rect { fill: #f6f8fa; stroke: #8c959f }
  path { fill: none; stroke: #656d76; stroke-width: 1.2; marker-end: url(#head) }
  #head path { fill: #656d76; stroke: none; marker-end: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .uses { fill: #9198a1 } rect { fill: #161b22; stroke: #6e7681 }
    path { stroke: #9198a1 } #head path { fill: #9198a1 }
  }
"""


@dataclass(frozen=True)
class Package:
    """A package or module directly in ganlab.

    Attributes:
        name: Its name.
        purpose: The first line of its docstring.
    """

    name: str
    purpose: str


def layers() -> list[list[str]]:
    """The names of packages in each layer, the highest first, as configured for import-linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (c for c in settings["contracts"] if c["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def package(name: str) -> Package:
    """A package by its name."""
    place = ROOT / "ganlab" / name
    top = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    said = ast.get_docstring(ast.parse(top.read_text())) or ""
    return Package(name, said.partition("\n")[0])


def imports(names: set[str]) -> dict[str, set[str]]:
    """The imports of each package, including those in functions and for types."""
    import grimp

    graph, found = grimp.build_graph("ganlab", cache_dir=None), {name: set[str]() for name in names}
    for module in graph.modules:
        importer = module.split(".")[1] if "." in module else ""
        for imported in graph.find_modules_directly_imported_by(module):
            target = imported.split(".")[1] if "." in imported else ""
            if importer in names and target in names - {importer}:
                found[importer].add(target)
    return found


def needed(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The imports that no other ones imply."""

    def reached(start: str) -> set[str]:
        return {start}.union(*(reached(name) for name in graph[start]))

    return sorted(
        (name, target)
        for name, targets in graph.items()
        for target in targets
        if not any(target in reached(other) for other in targets - {target})
    )


def drawing() -> str:
    """The picture, as SVG."""
    rows = [[package(name) for name in layer if name != "__main__"] for layer in layers()]
    rows = [row for row in rows if row]
    row_of = {item.name: number for number, row in enumerate(rows) for item in row}
    uses = needed(imports(set(row_of)))
    places: dict[str, tuple[float, float, float]] = {}
    boxes = []
    for number, row in enumerate(rows):
        width = min(460, (_WIDTH - 2 * _MARGIN - (len(row) - 1) * _GAP) / len(row))
        left = (_WIDTH - len(row) * width - (len(row) - 1) * _GAP) / 2
        for item in row:
            top = _MARGIN + number * (_HEIGHT + _SPACE)
            places[item.name] = (left, top, width)
            below = [target for name, target in uses if name == item.name and row_of[target] > number + 1]
            boxes.append(_box(item, below, left, top, width))
            left += width + _GAP
    arrows = [_arrow(places[name], places[target]) for name, target in uses if row_of[target] == row_of[name] + 1]
    height = 2 * _MARGIN + len(rows) * (_HEIGHT + _SPACE) - _SPACE
    head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
            "<title>The packages of ganlab, each above those that it imports</title>",
            f"<style>{_STYLE}</style>",
            f'<defs>{head}<path d="M0 0 8 4 0 8z"/></marker></defs>',
            *boxes,
            *arrows,
            "</svg>\n",
        ]
    )


def _box(item: Package, below: list[str], left: float, top: float, width: float) -> str:
    purpose = textwrap.wrap(item.purpose.replace("`", ""), int(width / 6.9), max_lines=2, placeholder=" …")
    x = left + 10
    words = [f'<text class="name" x="{x:g}" y="{top + 19:g}">{escape(item.name)}</text>']
    words += [f'<text x="{x:g}" y="{top + 36 + 15 * i:g}">{escape(line)}</text>' for i, line in enumerate(purpose)]
    if below:
        words.append(f'<text class="uses" x="{x:g}" y="{top + 70:g}">↓ {", ".join(below)}</text>')
    return f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{_HEIGHT}" rx="6"/>' + "".join(words)


def _arrow(source: tuple[float, float, float], target: tuple[float, float, float]) -> str:
    (left, top, width), (to_left, to_top, to_width) = source, target
    return f'<path d="M{left + width / 2:g} {top + _HEIGHT:g} L{to_left + to_width / 2:g} {to_top - 1:g}"/>'


def lines(place: Path) -> int:
    """The lines of all Python files of a module or below a folder."""
    files = [place.with_suffix(".py")] if place.with_suffix(".py").is_file() else place.rglob("*.py")
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def over_budget() -> list[str]:
    """Prints the lines of packages beside their budgets; returns those that have more than theirs, or none."""
    budgets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ganlab"]["lines"]
    counted = {name: lines(ROOT / name) for name in budgets}
    for name, budget in budgets.items():
        print(f"{counted[name]:7,} of {budget:6,}  {name}")
    unnamed = [f"{folder}/{name}" for folder in ("ganlab", "plugins") for name in _packages(ROOT / folder)]
    return [name for name in budgets if counted[name] > budgets[name]] + [n for n in unnamed if n not in budgets]


def _packages(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/__init__.py"))


def main() -> int:
    """Runs the command; returns 1 if the drawing is out of date or a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        over = over_budget()
        if over:
            print(f"More lines than pyproject.toml allows, or no budget there: {', '.join(over)}.")
        same = TARGET.is_file() and TARGET.read_text() == drawing()
        print(f"{TARGET.name} is {'up to date' if same else 'out of date: run python tools/architecture.py'}.")
        return int(bool(over) or not same)
    TARGET.write_text(drawing())
    return 0


if __name__ == "__main__":
    sys.exit(main())
