"""The whole check: lowered by TensorFlow, compiled by the TPU's own compiler."""

import json
import subprocess
from pathlib import Path

import pytest
from ganlab_verify.tpu import check
from ganlab_verify.tpu.checking import COMPILING

from ganlab.errors import ConfigError

pytestmark = [pytest.mark.tpu_check, pytest.mark.usefixtures("compiler")]

PLUGIN = Path(__file__).with_name("tpu_constraints.py")
GIB = 2**30

# The critic: a convolution of 5 x 5 x 1 x 8, its bias, a dense layer of 4 x 4 x 8 to 1, its bias.
CRITIC = [200, 8, 128, 1]
# The generator: a dense layer of 16 to 4 x 4 x 8, its bias, batch normalization's scale and offset, a transposed
# convolution of 5 x 5 x 1 x 8, its bias.
GENERATOR = [2048, 128, 8, 8, 200, 1]
# Synchronized batch normalization reduces a sum, a sum of squares and a count of each of 8 channels, whenever the
# generator runs; differentiating it reduces the gradients of the sums. The count has none.
MOMENTS, MOMENT_GRADIENTS = [8, 8, 8], [8, 8]
CRITIC_STEPS = 2


def all_reduces(peers=()):
    """The sizes, in numbers, of the tensors that replicas sum in one iteration."""
    update = MOMENTS + CRITIC + list(peers)
    return CRITIC_STEPS * update + MOMENTS + MOMENT_GRADIENTS + GENERATOR


def written(row):
    return row.data["all_reduces"]["count"], row.data["all_reduces"]["bytes"]


@pytest.mark.parametrize(
    ("constraint", "topology"),
    [
        ("gradient_penalty", "v5e:2x2"),
        ("gradient_penalty", "v4:2x2x1"),
        ("weight_clipping", "v4:2x2x1"),
        ("spectral_norm", "v5e:2x2"),
    ],
)
def test_the_basic_constraints_compile(source, constraint, topology):
    row = check(source(constraint), topology=topology)
    assert (row.check, row.status) == ("tpu", "passed"), row.detail
    sizes = all_reduces()
    assert written(row) == (len(sizes), 4 * sum(sizes))
    assert 0 < row.data["compiled_all_reduces"]["count"] <= len(sizes)
    # Combining may drop unused values, for example a count that is the same for each channel; it adds nothing.
    assert 0 < row.data["compiled_all_reduces"]["bytes"] <= 4 * sum(sizes)
    assert f"{len(sizes)} all-reduces" in row.detail
    capacity = {"v5e:2x2": 16, "v4:2x2x1": 32}[topology] * GIB
    memory = row.data["memory"]
    assert memory["capacity"] == capacity
    assert (row.figure, row.limit) == (memory["total"] / capacity, 1.0)
    # At least the variables: weights, Adam's two moments of each, and the examples of both critic updates.
    state = 3 * (sum(CRITIC) + sum(GENERATOR)) if constraint == "gradient_penalty" else sum(CRITIC) + sum(GENERATOR)
    assert memory["arguments"] >= 4 * (state + CRITIC_STEPS * 4 * 8 * 8)
    assert memory["total"] < 0.01 * capacity
    # At least the critic's forward passes over 4 real and 4 fake examples, two operations to a multiplication.
    assert row.data["flops"] > CRITIC_STEPS * 8 * 2 * (4 * 4 * 200 + 128)
    assert (row.data["cores"], row.data["batch_size"]) == (4, 16)
    products = row.data["float32_products"]
    assert products["in_bfloat16"] == 0 < products["count"]
    assert "bfloat16" not in row.detail
    json.dumps(row.data)


def test_replicas_that_communicate_compile(source):
    row = check(source("peers"))
    assert row.status == "passed", row.detail
    # Of one number: a sum, a mean. Of one from each of 4 replicas: the gather in advance, that in the penalty, and the
    # gradient of the latter.
    sizes = all_reduces(peers=[1, 1, 4, 4, 4])
    assert written(row) == (len(sizes), 4 * sum(sizes))


def test_a_batch_that_does_not_divide_is_rounded_up(source):
    row = check(source("weight_clipping", "experiment.batch_size=6", "experiment.critic_steps=1"), topology="v2:2x2")
    assert row.status == "passed", row.detail
    # Two cores to a chip of 16 GiB.
    assert (row.data["cores"], row.data["batch_size"], row.data["memory"]["capacity"]) == (8, 8, 8 * GIB)
    assert "experiment.batch_size = 6 does not divide over 8 cores: 8 was compiled" in row.detail


def test_one_core_needs_no_all_reduce(source):
    params = ["experiment.critic_steps=1", "experiment.precision=mixed_bfloat16"]
    row = check(source("gradient_penalty", *params), topology="v5e:1x1")
    assert row.status == "passed", row.detail
    assert row.data["compiled_all_reduces"] == {"count": 0, "bytes": 0}
    # The precision of products reaches the TPU.
    products = row.data["float32_products"]
    assert products["in_bfloat16"] == products["count"] > 0
    assert "float32 products round their factors to bfloat16" in row.detail


def test_microbatches_and_recomputed_activations_compile(source):
    params = ["experiment.microbatches=2", "experiment.rematerialize=True", "experiment.critic_steps=1"]
    row = check(source("gradient_penalty", *params, "architectures.dcgan.generator_normalization=none"))
    assert row.status == "passed", row.detail
    # Each gradient is summed over the microbatches first, and over the replicas once.
    sizes = CRITIC + GENERATOR[:2] + GENERATOR[4:]
    assert written(row) == (len(sizes), 4 * sum(sizes))


def test_a_step_that_reduces_nothing_fails(source):
    parts = [f"experiment.{role}_optimizer=@optimizers.alone()" for role in ("critic", "generator")]
    row = check(source("weight_clipping", *parts, "architectures.dcgan.generator_normalization=none"))
    assert row.status == "failed"
    assert "replicas would train apart" in row.detail


def line_of(mark):
    (number,) = [i for i, line in enumerate(PLUGIN.read_text().splitlines(), 1) if line.endswith(f"# the {mark} line")]
    return number


@pytest.mark.parametrize(
    ("constraint", "op"),
    [
        ("blurred", "ResizeBicubic"),
        ("blurred_slopes", "ResizeBicubicGrad"),  # differentiated again by the step
        ("blurred_slopes_of_slopes", "ResizeBicubicGrad"),  # differentiated again by the constraint itself
    ],
)
def test_an_obstacle_is_named_with_its_line(source, constraint, op):
    row = check(source(constraint, "experiment.critic_steps=1"))
    assert (row.status, row.figure) == ("failed", None)
    (obstacle,) = row.data["obstacles"]
    line = obstacle["line"]
    assert (obstacle["op"], line["function"], line["number"]) == (op, "blurred", line_of("bicubic"))
    assert Path(line["file"]).name == PLUGIN.name
    assert line["code"].endswith("# the bicubic line")
    assert op in row.detail
    assert f"{PLUGIN.name}:{line_of('bicubic')}" in row.detail


def test_a_step_that_does_not_fit_reports_the_memory_it_needs(source):
    row = check(source("weight_clipping", "experiment.batch_size=40000000", "experiment.critic_steps=1"))
    assert row.status == "failed"
    # Ten million real and as many fake images of 8 x 8 floats on each core, at the least.
    assert row.data["memory"]["total"] > 2 * 1e7 * 256
    assert row.figure > 1
    assert "does not fit" in row.detail


def test_a_mistake_in_a_plugin_is_reported_with_its_line(source):
    row = check(source("mistaken", "experiment.critic_steps=1"))
    assert row.status == "failed"
    assert "constraints.mistaken failed in penalty" in row.detail
    assert f"{PLUGIN.name}:{line_of('mistaken')}" in row.detail


def test_a_mistake_in_the_experiment_is_reported(source):
    row = check(source("gradient_penalty", "architectures.dcgan.critic_normalization=group"))
    assert row.status == "failed"
    assert "critic_normalization" in row.detail


def test_a_slice_that_does_not_exist_is_refused(source):
    with pytest.raises(ConfigError, match="Unknown topology 'v5e:3x3'"):
        check(source(), topology="v5e:3x3")


def test_all_reduces_are_counted_in_compiled_text(compiler):
    python, variables = compiler
    text = """
  %a = (f32[5,5,1,8]{3,2,1,0:T(1,128)S(1)}, /*index=1*/bf16[8]{0:T(128)}) all-reduce(%x, %y), replica_groups={{0,1}}
  %b = f32[]{:T(128)} all-reduce-start(%z), replica_groups={{0,1}}
  %c = f32[] all-reduce-done(%b)
  %d = pred[3]{0} all-reduce(%w), metadata={op_name="adam/all-reduce(1)"}
"""
    code = f"import runpy; m = runpy.run_path({str(COMPILING)!r}); print(m['_all_reduces']({text!r}))"
    done = subprocess.run([python, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str({"count": 3, "bytes": 4 * 200 + 2 * 8 + 4 + 3})
