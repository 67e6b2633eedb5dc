"""Plans for GPUs and for this machine: progress, a batch that was rounded up, and settings that are refused."""

import json

import pytest
from ganlab_plan import place, plan
from ganlab_plan.tracing import refused
from ganlab_verify import Source

SMALL = ("architectures.mlp.width=8", "experiment.critic_steps=1", "experiment.batch_size=64")
NORMALIZED = (
    "experiment.dataset=@datasets.digits()",
    "experiment.architecture=@architectures.dcgan()",
    "architectures.dcgan.channels=4",
    "experiment.critic_steps=1",
)


@pytest.mark.slow
def test_a_batch_that_does_not_divide_is_named_and_so_is_each_part_of_the_work():
    told = []
    three, four = plan(Source(("swiss_roll",), SMALL), [place("h100:3"), place("h100:4")], progress=told.append)
    sentence = "experiment.batch_size = 64 does not divide over 3 replicas: 66 was planned."
    assert (three.batch_size, sentence in three.notes) == (66, True)
    assert (four.batch_size, any("does not divide" in note for note in four.notes)) == (64, False)
    assert told == ["Tracing the step.", "Planning for h100:3 (1 of 2).", "Planning for h100:4 (2 of 2)."]


@pytest.mark.slow
@pytest.mark.parametrize(("params", "expected"), [(SMALL, []), (NORMALIZED, ["microbatches"])])
def test_settings_that_the_experiment_refuses_are_found(params, expected):
    settings = {"microbatches": 2, "rematerialize": True}
    assert refused(Source(("swiss_roll",), params), replicas=2, settings=settings) == expected


@pytest.mark.slow
def test_the_cpu_does_the_work_of_all_replicas():
    gpu, cpu = plan(Source(("swiss_roll",), SMALL[:2]), [place("h100:4"), place("cpu")])
    assert (gpu.replicas, gpu.batch_size) == (4, 256)
    assert gpu.cost.all_reduces == 2  # a message with the gradients of each network
    # Of 256 examples on one replica and of 64: all but the optimizers' work is four times as much.
    assert cpu.cost.products["float32"] == 4 * gpu.cost.products["float32"]
    assert cpu.time.total == cpu.time.products + cpu.time.input > 0
    json.dumps([gpu.as_json(), cpu.as_json()])
