"""docs/reference has every component that comes with ganlab, with every parameter, and its examples work."""

import inspect
import re
import runpy
import shlex

import pytest
from click.testing import CliRunner
from pages import ROOT, blocks

from ganlab import composition, config
from ganlab.cli import cli
from ganlab.plugins.manager import KINDS, discover

FOLDER = ROOT / "docs" / "reference"
# What an example lacks of an experiment.
WHOLE = next(text for language, _, text in blocks("docs/reference/experiment.md") if language == "gin")


@pytest.fixture(scope="module")
def pages():
    return {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}


def test_pages_are_up_to_date(pages):
    made = runpy.run_path(str(ROOT / "docs" / "component_reference.py"))["Reference"]().pages()
    changed = sorted(name for name in {*made, *pages} if made.get(name) != pages.get(name))
    assert changed == [], "Regenerate these pages: python docs/component_reference.py"


def test_every_component_and_every_parameter_has_an_entry_with_a_description(pages):
    expected = {
        f"{each.kind}.{each.name}": list(inspect.signature(each.factory.make).parameters)
        for each in discover().components.values()
        if each.plugin.name.startswith("ganlab_")
    }
    entries = {}
    for kind in KINDS:
        for section in re.split(r"^## ", pages[kind], flags=re.MULTILINE)[1:]:
            entries[f"{kind}.{section.splitlines()[0]}"] = parameters(section)
    assert entries == expected
    assert parameters(pages["experiment"]) == list(composition.parameters())


def parameters(section):
    lines = re.findall(r"^- \*\*`(\w+)`\*\*(.*)$", section, re.MULTILINE)
    for name, about in lines:
        assert re.fullmatch(r"(: required| `= .*`:) ?,? ?(one of )?`.+`.*\. \S.*", about), f"{name}{about}"
    return [name for name, _ in lines]


@pytest.mark.parametrize("kind", ["experiment", *KINDS])
def test_examples_can_be_read(kind, pages, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # submitit sets logging up anew when it is imported, with which absl's handler closes what pytest has for stderr.
    monkeypatch.setattr("logging.shutdown", lambda handlers: None)
    examples = blocks(f"docs/reference/{kind}.md")
    assert len(examples) == max(1, pages[kind].count("\n## "))
    for language, _, text in examples:
        if language == "sh":
            result = CliRunner().invoke(cli, [*shlex.split(text)[1:], "--dry-run"])
            assert result.exit_code == 0 or "not installed" in result.output, result.output
        else:
            rest = [line for line in WHOLE.splitlines() if f"{line.partition(' = ')[0]} = " not in text]
            (tmp_path / "example.gin").write_text("\n".join([*rest, text]), encoding="utf-8")
            config.load([tmp_path / "example.gin"])
