"""The project's pages: links work, every hook and command is mentioned, and no file names somebody's machine."""

import itertools
import re
import runpy
import subprocess
import tomllib
from pathlib import Path

import pytest
import release
from packaging.requirements import Requirement
from pages import ROOT

from ganlab import __version__
from ganlab.cli import COMMANDS

PAPERS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

# Each with an example that it must match, to reveal mistakes in a pattern.
UNWANTED = {
    "a path of somebody's machine": (r"(?<![\w.:/])/(?:home|root|Users|work|mnt|opt)/\w", "see /home/ada/notes"),
    "a private address": (r"\b(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}\b", "at 192.168.0.17"),
    "an index of packages": (r"--(?:extra-)?index-url|--find-links", "pip install --index-url https://a.b"),
    "a distribution that no index has": (
        r"\bganlab(?:-tf)?\[[a-z]|pip install '?ganlab\b",
        "pip install 'ganlab[cpu]'",
    ),
    "the rest of a merge": (r"(?m)^(?:<{7}|>{7})(?: |$)", "<<<<<<< ours"),
    "an unfinished thought": (r"\b(?:TODO|FIXME|XXX)\b", "# TODO: think"),
    "a private key": (r"-----BEGIN [A-Z ]*PRIVATE KEY", "-----BEGIN PRIVATE KEY-----"),
}


def tracked():
    """The text files under version control, or those of the source tree if git is not available."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        paths = [ROOT / name for name in done.stdout.split("\0") if name]
    else:
        folders = ("ganlab", "plugins", "gin", "tests", "docs", "tools", ".ci")
        paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
        paths += list(ROOT.iterdir())
    for path in paths:
        if path.is_file() and path != Path(__file__):
            try:
                text = path.read_text(encoding="utf-8")
                # base64 may contain any sequence of letters.
                yield path, re.sub(r'"image/png": "[^"]*"', '"image/png": ""', text)
            except UnicodeDecodeError:
                continue


@pytest.mark.parametrize("what", UNWANTED)
def test_no_tracked_file_contains(what):
    pattern, example = UNWANTED[what]
    assert re.search(pattern, example)
    found = []
    for path, text in tracked():
        for match in re.finditer(pattern, text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line}: {match[0]}")
    assert found == []


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.name)
def test_links_point_to_files_and_headings(path):
    assert list(release.broken_links([path])) == []


def test_tables_of_plugins_and_versions_are_up_to_date():
    made = runpy.run_path(str(ROOT / "docs" / "tables.py"))["pages"]()
    assert [path.name for path, text in made.items() if path.read_text() != text] == [], "python docs/tables.py"
    cells = tomllib.loads((ROOT / "tools" / "matrix.toml").read_text())["cell"]
    assert {cell["result"] for cell in cells} <= {"passed", "no wheel", "not available here"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tensorflow = Requirement(project["optional-dependencies"]["cpu"][0]).specifier
    passed = {(cell["python"], cell["tensorflow"]) for cell in cells if cell["result"] == "passed"}
    claimed = {line.split(" :: ")[-1] for line in project["classifiers"] if " :: Python :: 3." in line}
    assert {python for python, version in passed if tensorflow.contains(version)} == claimed
    workflow = (ROOT / ".github" / "workflows" / "versions.yml").read_text()
    tried = [re.findall(r'"(.*?)"', re.search(rf"{what}: \[(.*)\]", workflow)[1]) for what in ("python", "tensorflow")]
    assert set(itertools.product(*tried)) == passed


@pytest.mark.parametrize("paper", ["README.md", "docs/contract.md"])
def test_page_mentions_every_command(paper):
    text = (ROOT / paper).read_text(encoding="utf-8")
    assert [command for command in COMMANDS if not re.search(rf"\bganlab {command}\b", text)] == []


def test_readme_has_the_two_setup_commands_in_separate_blocks():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    commands = [block for block in blocks if "pip install -e" in block]
    assert commands == [
        "pip install -e '.[cpu]' && ganlab run --gin gin/quickstart.gin\n",
        "pip install -e '.[cpu,test]' && pytest -n 2 --dist loadfile\n",
    ]
    assert blocks[:2] == commands  # before any other command


@pytest.mark.parametrize(
    ("file", "line"),
    [("CHANGELOG.md", r"## \[?VERSION\]?( - (\d{4}-\d\d-\d\d|Unreleased))?"), ("CITATION.cff", "version: VERSION")],
)
def test_file_has_this_version(file, line):
    line = line.replace("VERSION", re.escape(__version__))
    assert re.search(f"^{line}$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_the_workflow_runs_every_part_of_ci_on_the_supported_pythons():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    script = (ROOT / ".ci" / "run").read_text()
    assert "run: bash .ci/run ${{ matrix.part }}" in workflow
    parts = re.findall(r"part: (\d)", workflow)
    assert parts == re.search(r"^  '' \| ((\d \| )+)all\)", script, re.MULTILINE)[1].split(" | ")[:-1]
    versions = re.findall(r'"(3\.\d+)"', workflow)
    assert set(versions) == set(re.findall(r"\bpython(3\.\d+)\b", script))
