"""The commands and the code in docs/exporting.md work."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "docs" / "exporting.md").read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_its_commands_and_its_code(ganlab, cpus):
    pytest.importorskip("tf2onnx", reason="the extra onnx is not installed")
    small = ["--param", "experiment.steps=2", "--param", "experiment.batch_size=16"]
    train = ["run", "--gin", "quickstart", "--name", "first", *small]
    commands = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
    assert len(commands) == 13
    for words in (train, *(shlex.split(command)[1:] for command in commands)):
        ganlab(*words)
    (code,) = [text for language, text in BLOCKS if language == "python"]
    values = {}
    exec(code, values)
    assert values["drawn"].samples.shape == (64, 8, 8, 1)
    assert values["ways"].samples.shape == (72, 8, 8, 1)


def test_calls_of_a_conditional_generator_are_those_of_the_page_in_its_export():
    from ganlab_export.readme import readme

    facts = {"format": "saved_model", "sample_shape": [2], "classes": 3, "latent_dim": 4, "value_range": None}
    facts |= {"trained_in": "float32", "label_input": "numbers", "step": 1, "steps": 1}
    facts["samples"] = {"count": 16, "seed": 0}
    page = readme({**facts, "written_with": dict.fromkeys(("ganlab", "tensorflow", "keras"), "1")})
    call = "generator.sample(n, seed, label)"
    assert call in page
    assert call in (ROOT / "docs" / "exporting.md").read_text(encoding="utf-8")
