"""Plans report progress and a batch that was rounded up, and advise no setting that the experiment refuses."""

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


@pytest.mark.parametrize(("params", "expected"), [(SMALL, []), (NORMALIZED, ["microbatches"])])
def test_settings_that_the_experiment_refuses_are_found(params, expected):
    settings = {"microbatches": 2, "rematerialize": True}
    assert refused(Source(("swiss_roll",), params), replicas=2, settings=settings) == expected
