"""The check `microbatches`: sums of parts pass, what mixes examples fails, and what refuses counts as refused."""

from pathlib import Path

import pytest
from ganlab_verify import Source
from ganlab_verify.microbatches import check

PLUGIN = Path(__file__).parent / "checked_plugin.py"

pytestmark = pytest.mark.usefixtures("own_plugins")


@pytest.fixture
def microbatches(experiments):
    def microbatches(*params, constraint="gradient_penalty"):
        gin, small = experiments("wgan")
        small = [setting for setting in small if setting.partition("=")[0] not in " ".join(params)]
        params = (*small, f"experiment.constraints=[@constraints.{constraint}()]", *params)
        return check(Source((gin,), params, plugin_file=str(PLUGIN)), iterations=2)

    return microbatches


@pytest.mark.slow
def test_a_penalty_by_example_trains_the_same_in_parts(microbatches):
    row = microbatches()
    assert row.status == "passed", row.detail
    assert row.figure <= row.limit <= 1e-3
    assert set(row.data["worst"]) == {"in 2 microbatches", "in 4 microbatches"}


@pytest.mark.slow
def test_a_penalty_that_mixes_examples_is_found(microbatches):
    row = microbatches(constraint="mixes_examples")
    assert (row.status, row.data["cause"]) == ("failed", "mixes examples")
    assert row.figure > 100 * row.limit
    assert row.data["where"].startswith(("critic", "constraints"))


def test_a_loss_over_the_global_batch_is_refused_by_name(microbatches):
    row = microbatches("experiment.loss=@losses.relativistic_average()")
    assert row.status == "refused"
    assert row.detail.startswith("The loss ")
    assert "takes statistics of the whole batch" in row.detail


def test_a_batch_that_does_not_divide_is_not_run(microbatches):
    row = microbatches("experiment.batch_size=9")
    assert (row.status, row.detail) == ("not run", "A batch of 9 does not divide into 2 microbatches.")
