"""Plans for a TPU against the compiler's own counts."""

import pytest
from ganlab_plan import place, plan
from ganlab_verify import Source
from ganlab_verify.tpu import check

pytestmark = [pytest.mark.tpu_check, pytest.mark.slow]

PARAMS = ("experiment.critic_steps=1", "experiment.precision=mixed_bfloat16")


def test_a_plan_has_the_compilers_counts_and_the_traced_ones_agree():
    source = Source(("methods/sngan",), PARAMS)
    tpu, gpu = plan(source, [place("v5e:2x2"), place("a100:4")], install=True)
    data = check(source, topology="v5e:2x2").data
    assert (tpu.cost.flops, tpu.cost.accessed) == (data["flops"], data["bytes_accessed"])
    assert (tpu.cost.reduced, tpu.cost.memory) == (data["compiled_all_reduces"]["bytes"], data["memory"]["total"])
    # The same step, counted in its graph: what is written before the compiler combines it.
    assert gpu.cost.reduced == data["all_reduces"]["bytes"]
    assert gpu.cost.flops == pytest.approx(tpu.cost.flops, rel=0.15)
    assert tpu.limit is not None


def test_without_optimization_a_plan_has_the_same_operations_and_all_reduces_in_a_shorter_program():
    source, found = Source(("methods/sngan",), PARAMS), {}
    for optimize in (True, False):
        found[optimize] = check(source, topology="v5e:2x2", optimize=optimize).data
    assert found[False]["flops"] == pytest.approx(found[True]["flops"], rel=0.02)
    assert found[False]["compiled_all_reduces"]["bytes"] == found[True]["compiled_all_reduces"]["bytes"]
    assert found[False]["memory"]["program"] < found[True]["memory"]["program"]
    [planned] = plan(source, [place("v5e:2x2")], install=True, optimize=False)
    assert planned.cost.memory == found[False]["memory"]["total"]
    assert any("did not optimize" in note for note in planned.notes)
