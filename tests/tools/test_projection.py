"""The arithmetic of tools/projection.py, worked out by hand."""

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def projecting():
    sys.path.insert(0, str(TOOLS))
    from projecting import chips, model, tables

    yield {"chips": chips, "model": model, "tables": tables}
    sys.path.remove(str(TOOLS))


@pytest.fixture
def model(projecting):
    return projecting["model"]


@pytest.fixture
def slices(projecting):
    return {where.name: where for where in projecting["chips"].SLICES}


def test_slices_have_the_chips_of_their_names(slices):
    # A v5e is counted in chips, a v5p in TensorCores, two to a chip.
    assert {name: where.chips for name, where in slices.items()} == {
        "v5e-4": 4,
        "v5e-16": 16,
        "v5e-64": 64,
        "v5e-256": 256,
        "v5p-8": 4,
        "v5p-64": 32,
        "v5p-256": 128,
        "v5p-1024": 512,
    }


def test_sides_that_are_closed_to_rings_are_crossed_in_half(slices):
    assert slices["v5e-64"].across == 7 + 7
    assert slices["v5e-256"].across == 8 + 8
    assert slices["v5p-64"].across == 1 + 2 + 2


def test_costs_are_a_line_through_the_compiled_batches(model):
    costs = model.Costs(8, 64, model.Cost(10.0, 100.0, 7, 50.0, 8.0), model.Cost(66.0, 156.0, 7, 50.0, 64.0))
    between = costs.at(36)
    assert (between.flops, between.accessed, between.examples) == (38.0, 128.0, 36.0)
    assert (between.all_reduces, between.reduced) == (7, 50.0)
    assert costs.at(2).flops == pytest.approx(4.0)


def test_a_line_that_falls_below_zero_is_cut_to_a_share(model):
    # 8 examples take 10 and 64 take 94: at one example the line is at -0.5, and an eighth of 10 is 1.25.
    costs = model.Costs(8, 64, model.Cost(10.0, 0.0, 1, 0.0, 0.0), model.Cost(94.0, 0.0, 1, 0.0, 0.0))
    assert costs.at(1).flops == 1.25


def test_times_are_counts_over_rates(model, slices):
    cost = model.Cost(197e12 / 4, 819e9 / 8, 6, 200e9, 1e9)
    spent = model.time(cost, slices["v5e-16"], precision="mixed_bfloat16", efficiency=0.5, host=8e9)
    assert spent.products == pytest.approx(0.5)
    assert spent.memory == pytest.approx(0.125)
    assert spent.exchange == pytest.approx(2 * 15 / 16)  # 200 GB over links of 200 GB/s
    assert spent.latency == pytest.approx(2 * 6 * 6e-6)  # six all-reduces, twice across 3 + 3 links
    assert spent.input == pytest.approx(0.5)  # four chips of a host take 1 GB each of 8 GB/s
    assert spent.total == pytest.approx(0.5 + 1.875 + 7.2e-5)
    assert spent.limit == "all-reduce bytes"
    float32 = model.time(cost, slices["v5e-16"], precision="float32", efficiency=0.5, host=8e9)
    assert float32.products == pytest.approx(3.0)  # six products of bfloat16 for each
    assert float32.limit == "products"


def test_input_that_is_slower_than_all_else_is_the_limit(model, slices):
    cost = model.Cost(1.0, 1.0, 1, 1.0, 1e9)
    spent = model.time(cost, slices["v5e-4"], precision="float32", efficiency=1.0, host=1e9)
    assert (spent.total, spent.limit) == (4.0, "input")


def test_the_ideal_is_the_smallest_slice_times_the_chips(projecting, model, slices):
    fast, slow = model.Time(1.0, 0.0, 0.0, 0.0, 0.0), model.Time(1.0, 0.0, 1.0, 0.0, 0.0)
    rows = [(slices["v5e-4"], 10, fast), (slices["v5e-16"], 10, slow)]
    lines = list(projecting["tables"].Projection("float32", "10 on each chip", rows).lines())
    assert lines[-3:-1] == [
        "| v5e-4 | 4 | 10 | 1000.00 ms | 0.00 ms | 0.00 ms | 1000.00 ms | 40 | 100% | products |",
        "| v5e-16 | 16 | 10 | 1000.00 ms | 0.00 ms | 1000.00 ms | 2000.00 ms | 80 | 50% | products |",
    ]
