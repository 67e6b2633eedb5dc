"""The arithmetic of tools/projection.py, worked out by hand."""

import sys
from pathlib import Path

import pytest
from ganlab_plan.times import Cost, Time

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def projecting():
    sys.path.insert(0, str(TOOLS))
    from projecting import model, tables

    yield {"model": model, "tables": tables}
    sys.path.remove(str(TOOLS))


@pytest.fixture
def model(projecting):
    return projecting["model"]


def cost(flops, accessed, seconds=0.0):
    return Cost(flops, {"float32": flops}, accessed, 7, 50.0, 0.0, input_seconds=seconds)


def test_slices_have_the_chips_of_their_names(model):
    # A v5e is counted in chips, a v5p in TensorCores, two to a chip.
    sizes = {name: int(name.split("-")[1]) // (2 if name.startswith("v5p") else 1) for name in model.SLICES}
    assert {name: where.chips for name, where in model.SLICES.items()} == sizes


def test_costs_are_a_line_through_the_compiled_batches(model):
    between = model.Costs(8, 64, cost(10.0, 100.0, 8.0), cost(66.0, 156.0, 64.0)).at(36)
    assert (between.flops, between.accessed, between.input_seconds) == (38.0, 128.0, 36.0)
    assert (between.products, between.all_reduces, between.reduced) == ({"float32": 38.0}, 7, 50.0)


def test_a_line_that_falls_below_zero_is_cut_to_a_share(model):
    # 8 examples take 10 and 64 take 94: at one example the line is at -0.5, and an eighth of 10 is 1.25.
    assert model.Costs(8, 64, cost(10.0, 0.0), cost(94.0, 0.0)).at(1).flops == 1.25


def test_the_ideal_is_the_smallest_slice_times_the_chips(projecting, model):
    fast, slow = Time(1.0, 0.0), Time(1.0, 0.0, exchange=1.5)
    rows = [("v5e-4", model.SLICES["v5e-4"], 10, fast), ("v5e-16", model.SLICES["v5e-16"], 10, slow)]
    lines = list(projecting["tables"].Projection("float32", "10 on each chip", rows).lines())
    assert lines[-3:-1] == [
        "| v5e-4 | 4 | 10 | 1000.00 ms | 0.00 ms | 0.00 ms | 1000.00 ms | 40 | 100% | compute |",
        "| v5e-16 | 16 | 10 | 1000.00 ms | 0.00 ms | 1500.00 ms | 2500.00 ms | 64 | 40% | all-reduce |",
    ]
