"""A plan for GPUs and for this machine, from the experiment to its numbers."""

import json

import pytest
from ganlab_plan import place, plan
from ganlab_verify import Source

PARAMS = ("architectures.mlp.width=8", "experiment.critic_steps=1")


@pytest.mark.slow
def test_the_cpu_does_the_work_of_all_replicas():
    gpu, cpu = plan(Source(("swiss_roll",), PARAMS), [place("h100:4"), place("cpu")])
    assert (gpu.replicas, gpu.batch_size) == (4, 256)
    # Of 256 examples on one replica and of 64: all but the optimizers' work is four times as much.
    assert cpu.cost.products["float32"] == 4 * gpu.cost.products["float32"]
    assert cpu.time.total == cpu.time.products + cpu.time.input > 0
    json.dumps([gpu.as_json(), cpu.as_json()])
