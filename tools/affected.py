"""Chooses the long tests (`slow`, `conformance`, `tpu_check`) that a change needs, for `.ci/run`.

    python tools/affected.py        # for this branch, uncommitted changes included
    python tools/affected.py 2      # the second sixth of all; `all` for all

Prints the arguments of one pytest command per line, and the reasons to standard error. A test file is near a changed
file that it imports or names, or whose package its folder mirrors. It is within reach of what these import in turn; the
code that trains is within reach of every test. All of them run if they fit into LIMIT; otherwise as many of the near
ones as fit beside a sixth of the others. The commit decides which sixth, also where the change is not known.
"""

from __future__ import annotations

import ast
import collections
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
MARKERS = {"conformance": "conformance", "slow": "(slow or tpu_check) and not conformance"}
# Seconds on two cores, means over all long tests: of a file and of a test in it. LIMIT is for the tests of one change.
SECONDS, LIMIT = {"conformance": (0, 0.9), "slow": (20, 1.4)}, 840
# How many parts share all of them, a process for each: one keeps what it compiled, 14 GB for a third of the slow ones.
PARTS = 6
# What the tests of a folder are about, unless a package or tool has the folder's name.
MIRRORS = {
    "archiving": ["ganlab_archive"],
    "authoring": ["ganlab_scaffold", "ganlab_verify.testing"],
    "benchmarking": ["ganlab_benchmark"],
    "browser": ["ganlab_tensorboard", "ganlab_compare"],
    "comparing": ["ganlab_compare"],
    "conformance": ["ganlab_builtin", "ganlab_verify.testing"],
    "experiments": ["gin"],
    "exporting": ["ganlab_export"],
    "evaluators": ["ganlab_builtin.evaluators", "ganlab_evaluate"],
    "fidelity": ["tools.fidelity", "tools.fidelities"],
    "devices": ["ganlab_devices"],
    "listing": ["ganlab_runs"],
    "remote": ["ganlab_remote"],
    "packaging": ["docs"],
    "passport": ["ganlab_passport"],
    "planning": ["ganlab_plan"],
    "reliability": ["tools.chaos", "tools.killing", "tools.endurance", "tools.enduring"],
    "safety": ["ganlab.runs"],
    "sweeps": ["ganlab_sweep"],
    "tensorboard_tab": ["ganlab_tensorboard"],
    "testing": ["ganlab_verify.testing"],
    "time_travel": ["ganlab_time_travel"],
    "verification": ["ganlab_verify"],
    "verification_tpu": ["ganlab_verify"],
}
# Words in tests that start the command line in a process.
STARTS = {"Popen", "environment", "start_process", "subprocess"}
# Settings and fixtures of all tests.
OF_ALL = ("pyproject.toml", ".ci/run", "tests/conftest.py", "tests/forking.py")


def git(*arguments: str) -> str:
    """The output of a git command in the source tree, or "" where it fails or there is no git."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def changes() -> list[str]:
    """The files changed since the branch left main or, on main, since the commit before; none if that is unknown."""
    head, forks = git("rev-parse", "HEAD"), [git("merge-base", "HEAD", name) for name in ("origin/main", "main")]
    base = next((fork for fork in forks if fork not in ("", head)), git("rev-parse", "--verify", "--quiet", "HEAD~1"))
    if not base:
        return []
    changed = git("diff", "--name-only", "--no-renames", base).split("\n")
    return sorted({*changed, *git("ls-files", "--others", "--exclude-standard").split("\n")} - {""})


def module(path: Path) -> str:
    """A file's dotted name: that of its module, or for example "gin.quickstart"."""
    parts = path.with_suffix("").parts
    return ".".join(parts[parts[0] == "plugins" : -1 if path.stem == "__init__" else None])


@cache
def words(file: Path) -> set[str]:
    """The words in a file, with names of pages such as "runs.md"."""
    return set(re.findall(r"\w+\.md|\w+", file.read_text(encoding="utf-8")))


@cache
def imports(file: Path) -> set[str]:
    """The names of modules and of what is imported from them, in functions too; `import ganlab` says nothing."""
    names = set[str]()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return names - {"ganlab"}


@cache
def uses(file: Path) -> tuple[set[str], set[str]]:
    """The words in a test file, in its helpers and in the experiment files that they name; and what they import."""
    folders = (ROOT / "tests" / "runs", ROOT / "tests" / "comparing", file.parent)  # pytest's `pythonpath`, and its own
    helpers = {path.stem: path for folder in folders for path in folder.glob("*.py")}
    experiments = {path.stem: path for path in (ROOT / "gin").rglob("*.gin")}
    read, named, imported = [file, helpers.pop("conftest", file)], set[str](), set[str]()
    for path in read:
        named |= words(path)
        if path.suffix == ".py":
            imported |= {*imports(path), module(path.relative_to(ROOT))}
        read += [helpers.pop(name) for name in imported & set(helpers)]
        read += [experiments.pop(name) for name in named & set(experiments)]
    return named, imported


@cache
def reach(name: str) -> set[str]:
    """The modules of a package, those that it imports, and those that they import."""
    graph = _graph()
    if name not in graph.modules:
        return set()
    return {name} | graph.find_descendants(name) | graph.find_upstream_modules(name, as_package=True)


@cache
def _graph() -> grimp.ImportGraph:
    packages = [path.parent.name for path in ROOT.glob("plugins/*/__init__.py")]
    return grimp.build_graph("ganlab", *packages, exclude_type_checking_imports=True, cache_dir=None)


def about(file: str) -> list[str]:
    """The packages and tools that a test file mirrors by its folder."""
    folder = file.split("/")[1]
    return MIRRORS.get(folder) or [f"ganlab_builtin.{folder}", f"ganlab.{folder}", f"tools.{folder}"]


def is_near(path: str, file: str) -> bool:
    """Whether a test file imports, names or mirrors a changed file, or has it in its folder as data."""
    named, imported = uses(ROOT / file)
    page = path.endswith(".md")
    # Tests ask for components, experiment files and tools by name.
    by_name = page or path.startswith(("gin/", "plugins/ganlab_builtin/", "tools/"))
    return (
        path == file
        or (by_name and (Path(path).name if page else Path(path).stem) in named)
        or any(f"{module(Path(path))}.".startswith(f"{name}.") for name in (*imported, *about(file)))
        or (path.startswith(f"{Path(file).parent}/") and not path.endswith(".py"))
    )


def affected(changed: list[str], files: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The test files near a changed file, and others within reach of one; each with the changed file."""
    near, within = {}, {}
    for file in files:
        named, imported = uses(ROOT / file)
        entered = {"ganlab.run", *(["ganlab.cli"] if named & STARTS else [])}
        reached = set().union(*map(reach, {*entered, *imported, *about(file)}))
        close = [path for path in changed if is_near(path, file)]
        others = [path for path in changed if path in OF_ALL or module(Path(path)) in reached]
        if close:
            near[file] = close[0]
        elif others:
            within[file] = others[0]
    return near, within


def choose(near: Iterable[str], within: Iterable[str], seconds: dict[str, float]) -> tuple[list[str], bool]:
    """The test files to run, and whether a part of the others runs, too."""
    wanted = [*near, *within]
    if wanted and sum(seconds[file] for file in wanted) <= LIMIT:
        return wanted, False
    # A part of all has its share of what is chosen anyway.
    chosen, left = [], PARTS / (PARTS - 1) * (LIMIT - sum(seconds.values()) / PARTS)
    for file in sorted(near, key=seconds.__getitem__):
        if seconds[file] <= left:
            chosen.append(file)
            left -= seconds[file]
    return chosen, True


class Counter:
    """Plugin of pytest: counts the long tests in each file, by marker."""

    def __init__(self) -> None:
        self.counts = {marker: collections.Counter[str]() for marker in MARKERS}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Counts the selected tests."""
        for item in session.items:
            marker = "conformance" if item.get_closest_marker("conformance") else "slow"
            self.counts[marker][item.nodeid.partition("::")[0]] += 1


def count() -> dict[str, collections.Counter[str]]:
    """The number of long tests in each file, by marker."""
    counter, long = Counter(), " or ".join(f"({expression})" for expression in MARKERS.values())
    status = pytest.main(["--collect-only", "-p", "no:terminal", "-m", long, str(ROOT / "tests")], [counter])
    if status:
        sys.exit(f"The tests cannot be collected, exit status {int(status)}. Run: pytest --collect-only")
    return counter.counts


def commands(chosen: list[str], part: str | None, counts: dict[str, collections.Counter[str]]) -> list[str]:
    """The arguments of pytest for the chosen files, and for a part of the others."""
    lines = []
    for marker, expression in MARKERS.items():
        files = [file for file in chosen if counts[marker][file]]
        if files:
            lines.append(f"-m '{expression}' {' '.join(files)}")
        others = counts[marker].total() - sum(counts[marker][file] for file in files)
        if part and others:
            own = range(1, PARTS + 1) if part == "all" else [int(part)]
            splits = [f" --splits {PARTS} --group {group}" for group in own]
            for split in splits if others >= PARTS else [""]:
                lines.append(" ".join([f"-m '{expression}'{split}", *(f"--ignore={file}" for file in files)]))
    return lines


def main() -> int:
    """Prints the commands."""
    counts = count()
    if len(sys.argv) > 1:
        print(*commands([], sys.argv[1], counts), sep="\n")
        return 0
    seconds = collections.Counter[str]()
    for marker, (of_file, of_test) in SECONDS.items():
        seconds.update({file: of_file + of_test * number for file, number in counts[marker].items()})
    changed = changes()
    near, within = affected(changed, sorted(seconds))
    chosen, others = choose(near, within, seconds)
    for file in chosen:
        print(f"{file}, about {seconds[file]:.0f} s: {(near | within)[file]} changed", file=sys.stderr)
    part = None
    if others:
        commit = git("rev-parse", "HEAD")
        part = str((int(commit[:6], 16) if commit else int(time.strftime("%j"))) % PARTS + 1)
        needed = sum(seconds[file] for file in near | within)
        why = f"take about {needed:.0f} s, more than {LIMIT}" if needed else "are not known"
        print(f"Part {part} of {PARTS} of the others: all long tests that this change needs {why}.", file=sys.stderr)
    print(*commands(chosen, part, counts), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
