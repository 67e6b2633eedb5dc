"""The atlas of second derivatives: planted mistakes are named, and its page has the tables of its results."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import atlas
import pytest

DOCS = Path(__file__).parents[2] / "docs"
# PyTorch has its own process: it does not always survive beside TensorFlow. `cube` and `detached` are x**3.
PLANTED = """
import json, sys
import atlas, numpy as np, torch

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.save_for_backward(x)
        ctx.held = held
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * (x.detach() if ctx.held else x) ** 2, None

names = {"np": np}
library = atlas.torch(names, "eager")
library.compiled = lambda step: step
names |= {"cube": lambda x: Cube.apply(x, False), "detached": lambda x: Cube.apply(x, True)}
print(json.dumps([atlas.measured(library, names, *case) for case in json.loads(sys.argv[1])]))
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed.")
def test_planted_mistakes_are_named_and_a_right_derivative_passes():
    cases = [
        ("n(2, 3)", "cube(x * w(3))"),
        ("n(2, 3)", "detached(x * w(3))"),
        ("0 * n(2, 3)", "torch.relu(x)"),
        ("n(2, 3)", "torch.where(x > 9, torch.log(x - 9), x * 2 + x.detach() ** 2)"),
        ("0 * n(2, 3)", "torch.sqrt(x**4)"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", PLANTED, json.dumps(cases)],
        cwd=Path(atlas.__file__).parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    right, wrong, kink, lost, invalid = json.loads(done.stdout)
    assert right["first"] == right["reverse"] == wrong["first"] == "right"
    assert wrong["reverse"].startswith("wrong by")
    assert kink["reverse"] == "kink"
    assert lost["first"] != "right"
    assert invalid["reverse"].startswith("NaN")


def test_the_page_has_the_tables_of_the_results():
    page = (DOCS / "derivatives.md").read_text()
    for title, rows in json.loads((DOCS / "derivatives.json").read_text()).items():
        assert f"{title}: {len(rows)} calls" in page
        assert atlas.table(rows) in page
