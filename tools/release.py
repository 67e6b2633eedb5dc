"""Makes a release and tries it: wheel, sdist and notes, in a fresh environment without the source tree.

    python tools/release.py                     # writes dist/
    python tools/release.py --steps 20          # trains the quickstart for 20 iterations, not to its end
    python tools/release.py --pages             # checks the pages alone
    python tools/release.py --python python3.13 'tensorflow==2.20.*'   # as in a cell of docs/versions.md

Checks that links and anchors of all pages lead somewhere and that each `pip install` in them names what exists; builds;
holds the metadata (`twine check`), the wheel's size and the number of required packages to their limits; then installs
the wheel elsewhere and runs the quickstart, `ganlab doctor`, the tab in TensorBoard, and a new plugin package with its
tests. The notes are the version's section of CHANGELOG.md. Exits with 1 if a check failed, and says which.
Needs the extra `test` and a package registry.
"""

from __future__ import annotations

import argparse
import collections
import email.parser
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES, MOST_PACKAGES = 3_000_000, 11
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


class ReleaseError(Exception):
    """A check that failed, in one sentence."""


def pages() -> list[Path]:
    """The pages of the project: Markdown at the top and below docs, and notebooks."""
    docs = [path for ending in ("md", "ipynb") for path in sorted((ROOT / "docs").rglob(f"*.{ending}"))]
    return [*sorted(ROOT.glob("*.md")), *docs]


def text_of(page: Path) -> str:
    """What a page says: of a notebook, its cells."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return text


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST name them."""
    found: set[str] = set()
    counts: collections.Counter[str] = collections.Counter()
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", _FENCE.sub("", text_of(page)), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        found.add(f"{name}-{counts[name]}" if counts[name] else name)
        counts[name] += 1
    return found


def broken_links(pages: Iterable[Path]) -> Iterator[str]:
    """Each link to a file or a heading that is not there, as `page: link`."""
    for page in pages:
        text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text_of(page)))
        for link in re.findall(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)", text):
            place, _, anchor = link.partition("#")
            target = page.parent / place if place else page
            if ":" in place:
                continue
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                yield f"{page.name}: {link}"


def installs(text: str) -> Iterator[str]:
    """What the `pip install` lines of a text install."""
    for line in re.findall(r"\bpip install +([^`#&|;\n]+)", text):
        words = re.sub("['\"]", "", line).split()
        if words[0] == "-e":  # a folder; words of the sentence around it may follow
            yield words[1] if words[1].startswith(".") else f"./{words[1]}"
        else:
            yield from (word for word in words if not word.startswith("-"))


def unknown_installs(pages: Iterable[Path], project: Mapping[str, Any]) -> Iterator[str]:
    """Each thing that a page's `pip install` names and neither `[project]` nor the registry has, as `page: name`."""
    extras = project["optional-dependencies"]
    own = {name(each) for each in [*project["dependencies"], *(one for extra in extras.values() for one in extra)]}
    for page in pages:
        for word in installs(text_of(page)):
            ours = word.startswith(".") or name(word) == name(project["name"])
            asked = set(re.findall(r"[\w-]+", word.partition("[")[2])) if ours else set()
            if not (asked <= set(extras) and (ours or name(word) in own or in_registry(name(word)))):
                yield f"{page.name}: {word}"


def name(requirement: str) -> str:
    """The name in a requirement, as indexes compare it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;(]", requirement.strip())[0]).lower()


def in_registry(package: str) -> bool:
    """Whether pip finds a package."""
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    return subprocess.run(command, capture_output=True, timeout=120).returncode == 0


def notes(version: str, text: str) -> str:
    """The section of a version in the text of a changelog."""
    for section in re.split(r"^## +", text, flags=re.MULTILINE)[1:]:
        if re.match(rf"\[?{re.escape(version)}\b", section):
            return section.partition("\n")[2].strip() + "\n"
    raise ReleaseError(f"CHANGELOG.md has no section for {version}: begin one with '## {version} - DATE'.")


def required(wheel: Path) -> list[str]:
    """The requirements of a wheel that no extra asks for."""
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = email.parser.Parser().parsestr(archive.read(path).decode())
    return [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]


def limits(wheel: Path) -> None:
    """Raises ReleaseError if a wheel is too large or requires too much."""
    if (size := wheel.stat().st_size) >= MOST_BYTES:
        raise ReleaseError(f"{wheel.name} has {size:,} bytes; it must be below {MOST_BYTES:,}.")
    if len(packages := required(wheel)) > MOST_PACKAGES:
        raise ReleaseError(f"{wheel.name} requires {len(packages)} packages, more than {MOST_PACKAGES}.")


def build(out: Path) -> Path:
    """Builds the sdist, and the wheel from it, into a folder; returns the wheel."""
    for old in out.glob("ganlab_tf-*"):
        old.unlink()
    run([sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)])
    run([sys.executable, "-m", "twine", "check", "--strict", *map(str, out.glob("ganlab_tf-*"))])
    (wheel,) = out.glob("ganlab_tf-*.whl")
    limits(wheel)
    return wheel


def run(command: list[str], cwd: Path | None = None, most: float = 1800) -> str:
    """Runs a command without the settings of this shell; its output. Raises ReleaseError if it fails."""
    left_out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "GANLAB")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
    print("$", shlex.join(command), flush=True)
    settings: Any = {"cwd": cwd, "env": environment, "timeout": most, "text": True}
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **settings)
    except subprocess.TimeoutExpired:
        raise ReleaseError(f"'{shlex.join(command)}' has not ended after {most:.0f} s.") from None
    if done.returncode:
        raise ReleaseError(f"'{shlex.join(command)}' ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def environment(folder: Path, wheel: Path, more: Iterable[str], python: str) -> Path:
    """A new environment with the wheel for CPUs; returns its folder of programs."""
    run([python, "-m", "venv", str(folder)])
    run([str(folder / "bin" / "pip"), "install", "-q", f"{wheel}[cpu]", *more])
    return folder / "bin"


def tab(programs: Path, cwd: Path) -> None:
    """Starts TensorBoard on the runs, and asks it for the tab's page and data. Raises ReleaseError if one is wrong."""
    command = [str(programs / "ganlab"), "tensorboard", "runs", "--port", "0"]
    server = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    watch = threading.Timer(180, server.kill)
    watch.start()
    try:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        if address is None:
            raise ReleaseError("'ganlab tensorboard runs' printed no address.")
        for path, has in (("index.js", "import"), ("data/overview", "first")):
            with urllib.request.urlopen(f"{address[0].rstrip('/')}/data/plugin/ganlab/{path}", timeout=60) as answer:
                if has not in (text := answer.read().decode()):
                    raise ReleaseError(f"The tab's {path} lacks {has!r}: {text[:200]}")
    except OSError as error:
        raise ReleaseError(f"The tab does not answer: {error}") from None
    finally:
        watch.cancel()
        server.kill()
        server.wait()


def try_out(programs: Path, cwd: Path, steps: int | None) -> None:
    """What a newcomer does, in an empty folder: quickstart, doctor, tab, a plugin package. May raise ReleaseError."""
    ganlab, plugin = str(programs / "ganlab"), "soft-slope"
    short = ["--param", f"experiment.steps={steps}"] if steps else []
    run([ganlab, "run", "quickstart", "--name", "first", *short], cwd)
    run([ganlab, "doctor"], cwd)
    tab(programs, cwd)
    run([ganlab, "plugins", "new", plugin], cwd)
    run([str(programs / "pip"), "install", "-q", "-e", f"{plugin}[test]"], cwd)
    run([str(programs / "pytest"), "-q", plugin], cwd)
    run([ganlab, "plugins", "check", "soft_slope"], cwd)


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("pins", nargs="*", metavar="PIN", help="versions to install beside it, such as 'tensorflow==2.20.*'")
    add("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="the folder to build in, by default dist")
    add("--wheel", type=Path, metavar="FILE", help="try this wheel, and build none")
    add("--python", default=sys.executable, metavar="PROGRAM", help="the environment's Python, by default this one")
    add("--steps", type=int, metavar="N", help="iterations of the quickstart, by default all")
    add("--tests", nargs="+", default=[], metavar="PATH", help="tests of the source tree to run there")
    add("--pages", action="store_true", help="check the pages alone")
    options = parser.parse_args()
    try:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        wrong = [*broken_links(pages()), *unknown_installs(pages(), project)]
        if wrong:
            raise ReleaseError("Links that lead nowhere, or 'pip install' of nothing:\n" + "\n".join(wrong))
        print(f"{len(pages())} pages: every link and every 'pip install' is right.")
        if options.pages:
            return 0
        wheel = (options.wheel or build(options.out)).resolve()
        if options.wheel is None:
            text = notes(wheel.name.split("-")[1], (ROOT / "CHANGELOG.md").read_text())
            (options.out / "NOTES.md").write_text(text)
        with tempfile.TemporaryDirectory(prefix="ganlab-release-") as work:
            programs = environment(Path(work, "env"), wheel, options.pins, options.python)
            (cwd := Path(work, "elsewhere")).mkdir()
            try_out(programs, cwd, options.steps)
            if options.tests:
                run([str(programs / "pip"), "install", "-q", "hypothesis", "scikit-learn", "POT"])
                run([str(programs / "pytest"), "-q", "-p", "no:cacheprovider", *options.tests], ROOT)
            print(run([str(programs / "pip"), "freeze"]))
    except ReleaseError as failure:
        print(f"Not released: {failure}", file=sys.stderr)
        return 1
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {len(required(wheel))} required packages. All passed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
