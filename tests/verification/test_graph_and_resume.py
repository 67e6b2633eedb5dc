"""The checks `graph` and `resume`, in this process: the mistakes that they find, and their messages."""

import re
from pathlib import Path

import pytest
from ganlab_verify import Source

from ganlab import IncompatibleError
from ganlab.training.graph.trainer import Trainer

PLUGIN = Path(__file__).with_name("checked_plugin.py")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cpus", "own_plugins")]


def line(marked):
    """The file and number of a marked line of the plugin."""
    numbers = [i for i, text in enumerate(PLUGIN.read_text().splitlines(), start=1) if text.endswith(f"# {marked}")]
    return f"{PLUGIN.name}:{numbers[0]}"


@pytest.fixture
def graph(experiments):
    """The check of a small experiment under one of the plugin's constraints."""
    from ganlab_verify.graph import check

    def graph(constraint, *params):
        gin, small = experiments("wgan")
        params = (*small, f"experiment.constraints=[@constraints.{constraint}()]", *params)
        return check(Source((gin,), params, plugin_file=str(PLUGIN)), iterations=2)

    return graph


def test_a_penalty_that_communicates_passes_with_a_note_that_it_stays_uncompiled(graph):
    row = graph("peers")
    assert row.status == "passed", row.detail
    assert row.figure <= row.limit
    assert row.data["notes"][-1].startswith("The penalty of constraint peers communicates")
    assert set(row.data["worst"]) == {"eagerly", "compiled by XLA"}


def test_an_iteration_compiled_whole_is_compared_where_the_experiment_asks_for_it(graph):
    row = graph("follows_the_weights", "experiment.jit='step'")
    assert row.status == "passed", row.detail
    assert set(row.data["worst"]) == {"eagerly", "compiled by XLA", "as one program"}


def test_a_program_that_trains_otherwise_is_found(graph, monkeypatch):
    block = Trainer._block
    # An iteration later: other examples and other noise.
    monkeypatch.setattr(Trainer, "_block", lambda self, start, count: block(self, start + 1, count))
    row = graph("follows_the_weights", "experiment.jit='step'")
    assert (row.status, row.data["cause"]) == ("failed", "program unlike the graph"), row.detail
    assert row.detail.startswith("As one program: ")


def test_a_state_that_advance_computes_from_the_weights_passes(graph):
    row = graph("follows_the_weights")
    assert row.status == "passed", row.detail


def test_a_tensor_without_a_static_shape_is_named_with_its_line(graph):
    row = graph("masked")
    assert (row.status, row.data["cause"]) == ("failed", "unknown shape")
    assert row.figure == len(row.data["tensors"]) > 0
    assert "has no static shape: GatherV2 of shape (None,)" in row.detail
    assert line("the masked line") in row.detail


def test_an_operation_without_an_xla_kernel_is_named_with_its_line(graph):
    row = graph("bicubic", "experiment.dataset=@datasets.digits()")
    assert (row.status, row.data.get("operations")) == ("failed", ["ResizeBicubic"]), row.detail
    assert "XLA has no kernel for the operation ResizeBicubic at " in row.detail
    assert line("the bicubic line") in row.detail


@pytest.mark.parametrize(
    ("name", "cause", "said"),
    [
        ("own_noise", "XLA unlike the graph", "^Compiled by XLA: .*draws random numbers of its own"),
        ("frozen", "graph unlike eager", "frozen while tracing"),
    ],
)
def test_noise_inside_the_compiled_part_and_effects_of_python_while_tracing_are_found(graph, name, cause, said):
    row = graph(name)
    assert (row.status, row.data["cause"]) == ("failed", cause)
    assert row.figure > 0.01
    assert re.search(said, row.detail)


@pytest.fixture
def resumed(experiments, tmp_path):
    """The check of a small experiment, its two halves one after the other."""
    from ganlab_verify.resume import interrupt, resume

    def resumed(*params, iterations=5):
        gin, small = experiments("wgan_gp", critic_steps=2)
        source = Source((gin,), (*small, *params), plugin_file=str(PLUGIN))
        options = {"replicas": 2, "iterations": iterations, "folder": str(tmp_path)}
        at = interrupt(source, **options)["at"]
        return resume(source, **options, at=at)

    return resumed


def test_a_resumed_run_equals_an_uninterrupted_one(resumed, tmp_path):
    row = resumed("experiment.seed=3", "experiment.ema_decay=0.9")
    assert (row.status, row.figure, row.data["different"]) == ("passed", 0.0, []), row.detail
    at = row.data["interrupted_at"]
    assert 1 <= at <= 4
    assert f"Interrupted at iteration {at} of 5 on 2 replicas" in row.detail
    # Rows of two iterations: two of them, and the fifth iteration in the half-gathered row.
    assert "2 logged rows" in row.detail
    steps = {path.name for path in (tmp_path / "resumed" / "checkpoints").iterdir()}
    assert steps == {f"step-{at:08d}", "step-00000005"}


def test_a_program_resumes_on_its_one_replica(resumed):
    row = resumed("experiment.seed=3", "experiment.jit='step'")
    assert (row.status, row.data["replicas"]) == ("passed", 1), row.detail
    assert "of 5 on 1 replica and" in row.detail


def test_a_run_shorter_than_the_check_is_resumed_to_its_end(resumed):
    with pytest.raises(IncompatibleError, match=r"raise experiment\.steps"):
        resumed("experiment.steps=1")
    row = resumed("experiment.steps=3")
    assert (row.status, row.data["iterations"]) == ("passed", 3), row.detail


def test_state_outside_the_checkpoint_is_found(resumed):
    # Rows of two iterations: the last one is after the interruption, wherever that was.
    row = resumed("experiment.dataset=@datasets.forgetful()", iterations=6)
    assert (row.status, row.data["cause"]) == ("failed", "state outside the checkpoint")
    assert row.figure == len(row.data["different"]) > 10
    assert any(name.startswith("metrics.jsonl line") for name in row.data["different"])
    assert "Something that training depends on is not in the checkpoint" in row.detail
