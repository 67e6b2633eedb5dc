"""The atlas of second derivatives: planted mistakes are named, and its page has the tables of its results."""

import json
from pathlib import Path

import atlas
import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def measure():
    """A function that measures a call of PyTorch without compiling, `cube` and `detached` being x**3."""
    torch = pytest.importorskip("torch")
    dtype, names = torch.get_default_dtype(), {"np": np}
    library = atlas.torch(names, "eager")
    library.compiled = lambda step: step

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

    names |= {"cube": lambda x: Cube.apply(x, False), "detached": lambda x: Cube.apply(x, True)}
    yield lambda point, call: atlas.measured(library, names, point, call)
    torch.set_default_dtype(dtype)


def test_a_planted_second_derivative_is_named_and_a_right_one_passes(measure):
    right, wrong = measure("n(2, 3)", "cube(x * w(3))"), measure("n(2, 3)", "detached(x * w(3))")
    assert right["first"] == right["reverse"] == wrong["first"] == "right"
    assert wrong["reverse"].startswith("wrong by")


def test_kinks_lost_terms_and_nan_have_words_of_their_own(measure):
    assert measure("0 * n(2, 3)", "torch.relu(x)")["reverse"] == "kink"
    assert measure("n(2, 3)", "torch.where(x > 9, torch.log(x - 9), x * 2 + x.detach() ** 2)")["first"] != "right"
    assert measure("0 * n(2, 3)", "torch.sqrt(x**4)")["reverse"].startswith("NaN")


def test_the_page_has_the_tables_of_the_results():
    page = (DOCS / "derivatives.md").read_text()
    for title, rows in json.loads((DOCS / "derivatives.json").read_text()).items():
        assert f"{title}: {len(rows)} calls" in page
        assert atlas.table(rows) in page
