"""Places, times and advice, worked out by hand."""

import pytest
from ganlab_plan.advice import advice
from ganlab_plan.places import place, places
from ganlab_plan.times import Cost, Time, time

from ganlab.errors import ConfigError


def test_replicas_and_distances():
    assert (place("v5e:8x8").replicas, place("v5e:8x8").across) == (64, 14)
    assert place("v5e:16x16").across == 16  # closed to rings
    assert (place("v4:4x4x4").replicas, place("v4:4x4x4").across) == (64, 6)
    assert place("v4:2x2x4").across == 5  # open: not all of its sides are multiples of four
    assert (place("v3:2x2").replicas, place("v3:2x2").memory) == (8, 16 * 2**30)
    assert (place("h100").replicas, place("h100:8").replicas) == (1, 8)


@pytest.mark.parametrize(
    "name", ["v9:2x2", "h101", "h100:", "h100:0", "h100:x", "v5e", "v5e:2x2x2", "cpu:2", "v5e:32x16"]
)
def test_unknown_places_are_refused_with_the_known_ones(name):
    with pytest.raises(ConfigError) as caught:
        places(name.split(","))
    message = str(caught.value)
    assert "\n" not in message
    assert repr(name) in message
    assert any(way in message for way in ("for example", "smaller"))


@pytest.mark.parametrize("names", ["", " , ,"])
def test_no_name_is_refused(names):
    with pytest.raises(ConfigError, match=r"^No topology\. Name at least one, for example"):
        places(names.split(","))


COST = Cost(1e12, {"float32": 1e12}, 81.9e9, 10, 20e9, 1e9, input_seconds=0.56)


def test_a_time_is_counts_over_rates():
    spent = time(COST, place("v5e:2x2"), precision="mixed_bfloat16", fraction=0.5)
    assert spent.products == pytest.approx(1e12 / (197e12 / 2))
    assert spent.memory == pytest.approx(0.1)
    assert spent.exchange == pytest.approx(2 * 3 / 4 * 20e9 / 100e9)  # two of a chip's four links are wired
    assert spent.latency == pytest.approx(2 * 2 * 1e-6 * 10)
    assert spent.input == pytest.approx(0.56 * 4 / 56)
    assert spent.total == pytest.approx(0.1 + 0.3 + 4e-5)
    assert spent.limit == "all-reduce"
    exact = time(COST, place("v5e:2x2"), precision="float32", fraction=0.5)
    assert exact.products == pytest.approx(6 * spent.products)  # six products of bfloat16 for each


def test_a_gpu_multiplies_in_the_format_of_the_precision():
    where = place("a100")
    assert where.chip.rate("float32", "float32") == 19.5e12
    assert where.chip.rate("float32", "mixed_bfloat16") == 156e12
    assert where.chip.rate("bfloat16", "mixed_bfloat16") == 312e12


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("v5e:2x2", 100e9),  # a chip has four links of 50 GB/s one way, of which one leads along each side
        ("v5e:8x8", 100e9),  # as does one at a corner
        ("v5e:16x8", 150e9),  # the longer side is closed to a ring
        ("v5e:16x16", 200e9),
        ("v5e:1x4", 50e9),
        ("v4:2x2x1", 100e9),  # of six links of 50 GB/s
        ("v4:2x2x4", 150e9),
        ("v4:4x4x4", 300e9),
        ("v5p:2x2x2", 300e9),
        ("v2:1x1", 248e9),
    ],
)
def test_an_all_reduce_uses_the_links_that_are_wired(name, links):
    assert place(name).links == pytest.approx(links)


@pytest.mark.parametrize(
    ("name", "gib"), [("a100", 80), ("h100", 79.65), ("h200", 140.4), ("l4", 22.49), ("rtx4090", 24)]
)
def test_a_gpu_has_the_memory_that_its_driver_reports(name, gib):
    assert place(name).memory / 2**30 == pytest.approx(gib, rel=1e-3)


def test_gpus_of_several_hosts_reduce_over_the_network():
    assert place("h100:8").links == 450e9
    assert place("h100:16").links == 50e9


@pytest.mark.parametrize(
    ("parts", "limit"),
    [
        ({"products": 2.0, "memory": 1.0}, "compute"),
        ({"products": 1.0, "memory": 2.0}, "memory bandwidth"),
        ({"products": 1.0, "memory": 1.0, "exchange": 2.0}, "all-reduce"),
        ({"products": 1.0, "memory": 1.0, "launches": 2.0}, "kernel launches"),
        ({"products": 1.0, "memory": 1.0, "input": 5.0}, "input"),
    ],
)
def test_the_longest_part_is_the_limit(parts, limit):
    spent = Time(**parts)
    assert spent.limit == limit
    facts = {"batch_size": 64, "replicas": 4, "precision": "float32", "critic_steps": 5}
    assert advice(limit, COST, spent, place("v5e:2x2"), facts, 0.5)


def test_microbatches_are_advised_if_they_fit():
    # 10 GB of variables and 80 GB beside them; 17.2 GB hold the variables and a twelfth, and 16 is the next divisor.
    cost = Cost(1.0, {}, 1.0, 0, 0.0, 90e9)
    facts = {"batch_size": 64, "replicas": 4, "microbatches": 1, "variables": 10e9, "precision": "float32"}
    facts |= {"rematerialize": False, "refused": []}
    first, second, _ = advice("memory capacity", cost, Time(1.0, 1.0), place("v5e:2x2"), facts, 0.5)
    assert first.startswith("experiment.microbatches = 16,")
    assert second.startswith("experiment.rematerialize = True")
    facts["rematerialize"] = True
    assert len(advice("memory capacity", cost, Time(1.0, 1.0), place("v5e:2x2"), facts, 0.5)) == 2


def test_parts_on_a_cpu_add_up():
    assert Time(1.0, 2.0, input=3.0, serial=True).total == 6.0


def test_what_the_experiment_refuses_is_not_advised():
    cost = Cost(1.0, {}, 1.0, 0, 0.0, 90e9)
    facts = {"batch_size": 64, "replicas": 4, "microbatches": 1, "variables": 10e9, "precision": "float32"}
    facts |= {"rematerialize": False, "refused": ["microbatches", "rematerialize"]}
    assert len(advice("memory capacity", cost, Time(1.0, 1.0), place("v5e:2x2"), facts, 0.5)) == 1
