"""docs/data.md: its files, commands and fragments work, in order; its messages are those of the program."""

import re
import runpy

import numpy as np
import pytest
from pages import ROOT, blocks, files_and_commands, invoked
from PIL import Image

from ganlab import config

BLOCKS = blocks("docs/data.md")
FILES, COMMANDS = files_and_commands(BLOCKS)
SMALL = ("experiment.steps=2", "experiment.batch_size=8", "architectures.dcgan.channels=4")


@pytest.mark.slow
def test_commands_of_the_page_work_in_order(here, cpus):
    random = np.random.default_rng(0)
    for name in ("daisy", "rose"):
        (here / "flowers" / name).mkdir(parents=True)
        for i in range(6):
            Image.fromarray(random.integers(0, 256, (40, 48, 3), np.uint8)).save(here / "flowers" / name / f"{i}.jpg")
    runpy.run_path(str(here / "save.py"))
    small = [word for setting in SMALL for word in ("--param", setting)]
    outputs = [invoked(command, *(small if command.startswith("ganlab run ") else [])) for command in COMMANDS]
    assert sum("Completed at step 2 of 2" in output for output in outputs) == 3
    assert sum(command.startswith("ganlab run ") for command in COMMANDS) == 3
    assert sorted(path.name for path in here.glob("*.png")) == ["flowers.png", "gratings.png"]


def test_fragments_are_settings_of_an_experiment(here, cpus):
    runpy.run_path(str(here / "memory.py"))
    fragments = [text for language, _, text in BLOCKS if language == "gin"]
    assert len(fragments) == 4
    for text in fragments:
        start = "include 'base/sngan.gin'\nexperiment.architecture = @architectures.dcgan()\n"
        (here / "mine.gin").write_text(start + text)
        assert config.load(["mine.gin"]).arguments["dataset"].kind == "datasets"


def test_quoted_messages_are_those_of_the_program():
    rows = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs/data.md").read_text(encoding="utf-8"), re.MULTILINE)
    files = sorted((ROOT / "plugins" / "ganlab_builtin").rglob("*.py"))
    source = re.sub(r'"\s*f?"', "", "\n".join(file.read_text(encoding="utf-8") for file in files))
    assert len(rows) >= 6
    assert [row for row in rows if re.split(r" \d", row)[0] not in source] == []
