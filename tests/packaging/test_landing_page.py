"""docs/index.md: five steps whose commands work, and one line for each page, in the order of the sidebar."""

import re

import numpy as np
import pytest
from pages import ROOT, invoked
from PIL import Image

PAGE = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^(\d)\. \*\*.*?^   ```sh\n   ([^\n]*)\n   ```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {}


def test_there_are_five_steps_and_the_first_is_that_of_the_readme():
    assert [number for number, _ in STEPS] == ["1", "2", "3", "4", "5"]
    assert f"{STEPS[0][1]} && ganlab run" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_page_has_a_line_where_the_sidebar_has_it():
    lines = re.findall(r"^- \[.+?\]\(([\w/-]+)\.md\): \S", PAGE, re.MULTILINE)
    trees = re.findall(r"```{toctree}\n(.*?)```", PAGE, re.DOTALL)
    sidebar = [re.sub(r".*<(.*)>", r"\1", line) for tree in trees for line in tree.splitlines() if line[:1].isalpha()]
    assert lines == sidebar
    assert re.findall(r"^## (.*)", PAGE, re.MULTILINE)[1:] == re.findall(r":caption: (.*)", PAGE)
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert sorted(lines) == sorted([*pages, "reference/index"])


@pytest.mark.slow
def test_commands_of_the_steps_work_in_order(here, cpus):
    (here / "flowers").mkdir()
    for i in range(6):
        pixels = np.random.default_rng(i).integers(0, 256, (40, 48, 3), np.uint8)
        Image.fromarray(pixels).save(here / "flowers" / f"{i}.jpg")
    small = [word for setting in ("steps=2", "evaluators=[]") for word in ("--param", f"experiment.{setting}")]
    outputs = []
    for _, command in STEPS[1:]:
        outputs.append(invoked(command, *(small if command.startswith("ganlab run ") else [])))
    run, new, plugin, compared = outputs
    assert "Completed at step 2 of 2" in run
    assert "ganlab run flowers.gin" in new
    assert "pip install -e soft-slope" in plugin
    assert "wasserstein" in compared
