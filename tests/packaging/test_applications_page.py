"""docs/applications.md: the application is built, installed and run as written, and imports public names alone."""

import ast
import shlex

import pytest
from pages import ROOT, blocks, files_and_commands

import ganlab

FILES, COMMANDS = files_and_commands(blocks("docs/applications.md"))
EXPORTING = ("runs", "telemetry")


def public(module):
    return module == "ganlab" or module.removeprefix("ganlab.") in {*ganlab.__all__, *EXPORTING}


def test_the_application_imports_public_names_alone():
    sources = [ast.parse(text) for name, text in FILES.items() if name.endswith(".py")]
    nodes = [node for tree in sources for node in ast.walk(tree)]
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert [name for name in modules if name.split(".")[0] == "ganlab" and not public(name)] == []


def test_the_page_names_the_modules_that_the_api_page_lists():
    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in ("commands", "engine", "files"):
        assert f".. automodule:: ganlab.{name}\n" in api
        assert any(cell == f"`ganlab.{name}`" for cell in (ROOT / "docs/applications.md").read_text().split())


@pytest.mark.slow
def test_the_application_runs_as_written(tmp_path, environment):
    package = tmp_path / "ganlab_ends"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, text in FILES.items():
        ((tmp_path if name.endswith(".toml") else package) / name).write_text(text, encoding="utf-8")
    install, *commands = COMMANDS
    assert install == "pip install -e ."
    environment.install(tmp_path)
    _, drawn = environment.forked(*map(shlex.split, commands))
    assert drawn.strip().endswith("Wrote 1 runs to ends.html.")
    assert "<h1>critic/loss</h1>" in (tmp_path / "ends.html").read_text()
    assert "Draws where a metric of runs ended." in environment("-m", "ganlab", "--help")
