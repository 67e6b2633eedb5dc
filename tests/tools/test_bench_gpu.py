"""tools/bench.py --device gpu: which processes it starts, and what it does with those that fail."""

import json

import pytest
from benchmarks import gpu, processes
from benchmarks.gpu import Timed
from benchmarks.setting import Setting, environment

OTHERS = {"torch": "torch-python", "jax": "jax-python"}


def plans(section, **options):
    return gpu.plans(section, Setting("gpu", **{**OTHERS, **options}), "/folder")


def test_peers_run_in_the_interpreters_that_have_them():
    found = {plan.script: plan.python for plan in plans("mlp")}
    assert found["torch_eager.py"] == found["torch_compiled.py"] == "torch-python"
    assert found["jax_loop.py"] == "jax-python"
    assert {plan.script for plan in plans("mlp", torch="", jax="")} == {
        "ganlab_run.py",
        "tf_loop.py",
        "tf_compiled.py",
        "keras_fit.py",
    }
    assert [plan.script for plan in plans("sngan")] == ["ganlab_run.py", "mimicry_steps.py"]
    assert [plan.script for plan in plans("sngan", torch="")] == ["ganlab_run.py"]


def test_each_precision_and_each_jit_is_a_row_of_its_own():
    given = {"precisions": ("float32", "mixed_bfloat16"), "jits": ("auto", "off")}
    found = plans("dcgan", **given)
    assert len({plan.name for plan in found}) == len(found) == 2 * (2 + 6)
    runs = [json.loads(plan.arguments[1]) for plan in found if plan.script == "ganlab_run.py"]
    assert {(run["precision"], run["jit"]) for run in runs} == {
        (p, j) for p in ("float32", "mixed_bfloat16") for j in ("auto", "off")
    }
    assert len({run["run"] for run in runs}) == 4
    assert {run["log_every"] for run in runs} == {1}
    precisions = [plan.arguments[-1] for plan in found if plan.script == "tf_loop.py"]
    assert precisions == ["float32", "mixed_bfloat16"]


def test_sngan_is_the_published_file_on_images_in_memory():
    from dataclasses import asdict

    from ganlab_verify import Source, recipe_of

    (plan, _) = plans("sngan", precisions=("tensorfloat32",))
    assert plan.arguments[0] == "source"
    options = json.loads(plan.arguments[1])
    source = Source(**{k: tuple(v) if isinstance(v, list) else v for k, v in options["source"].items()})
    assert set(asdict(source)) >= set(options["source"])
    recipe = recipe_of(source)
    given = recipe.arguments
    assert (given["precision"], given["jit"], given["batch_size"], given["critic_steps"]) == (
        "tensorfloat32",
        "auto",
        64,
        5,
    )
    assert given["log_every"] == 1


def test_jax_does_not_take_the_memory():
    assert environment("gpu")["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert environment("cpu") == {"CUDA_VISIBLE_DEVICES": "-1"}


SERVES = """
import json, sys, time
{first}
for line in sys.stdin:
    {each}
    print(json.dumps({{"iterations": int(line), "seconds": {seconds} * int(line), "bytes": 0}}), flush=True)
"""


@pytest.fixture
def child(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "PEERS", tmp_path)
    started = []

    def start(name, first="", each="pass", seconds=0.5):
        (tmp_path / f"{name}.py").write_text(SERVES.format(first=first, each=each, seconds=seconds))
        started.append(processes.Child(f"{name}.py"))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def test_processes_start_side_by_side_and_failures_leave_the_others(child):
    # Both wait until the other has started, which one after the other could not.
    meet = "from pathlib import Path; Path({0!r}).touch()\nwhile not Path({1!r}).exists(): time.sleep(0.01)"
    here = str(processes.PEERS)
    children = {
        "a": child("a", first=meet.format(f"{here}/a-up", f"{here}/b-up")),
        "b": child("b", first=meet.format(f"{here}/b-up", f"{here}/a-up"), seconds=0.25),
        "dies": child("dies", first="sys.exit('no such library')"),
        "refuses": child("refuses", first="print(json.dumps({'error': 'no GPU'}), flush=True); sys.exit(1)"),
        "later": child("later", each="if int(line) > 2: sys.exit('out of memory')"),
    }
    found = {row.name: row for row in gpu.in_turn(children, 3, 60.0)}
    assert (found["a"].rounds, found["b"].rounds) == ([0.5] * 3, [0.25] * 3)
    assert found["a"].first > 0
    assert found["dies"].failure == "dies.py ended with code 1: no such library"
    assert found["refuses"].failure == "refuses.py: no GPU"
    assert found["later"].failure == "later.py ended with code 1: out of memory"


def test_a_process_that_does_not_start_is_ended(child):
    (row,) = gpu.in_turn({"hangs": child("hangs", first="time.sleep(60)")}, 1, 0.3)
    assert row.failure == "not ready within 0.3 s"


def test_the_table_has_median_and_range_in_milliseconds():
    rows = [Timed("x", 12.34, [0.010, 0.0125, 0.011]), Timed("y", failure="y.py: a | b")]
    lines = gpu.table({"mlp": rows}, "NVIDIA H100").splitlines()
    assert lines[0].startswith("On NVIDIA H100, milliseconds of an iteration")
    assert lines[-2:] == ["| x | 11 | 10 to 12.5 | 12.3 |", "| y | not measured | y.py: a / b |  |"]
    assert json.loads(gpu.as_json({"mlp": rows}, "H100"))["sections"]["mlp"][0]["rounds"] == [0.010, 0.0125, 0.011]
