"""XLA's programs are kept on disk, and found again by what would compile them to the same bits."""

import json
import os
import re
import subprocess
import sys

import pytest

import ganlab
from ganlab.support import xla_cache

# A program that compiles in a second or two.
SMALL = """
experiment.dataset = @datasets.digits()
experiment.architecture = @architectures.mlp()
experiment.loss = @losses.wasserstein()
experiment.constraints = [@constraints.gradient_penalty()]
experiment.strategy = @strategies.one_device()
experiment.critic_optimizer = @optimizers.adam()
experiment.generator_optimizer = @optimizers.adam()
experiment.jit = 'step'
experiment.critic_steps = 2
experiment.batch_size = 8
experiment.steps = 4
experiment.log_every = 1
experiment.checkpoint_every = 2
experiment.evaluate_every = 0
architectures.mlp.width = 16
architectures.mlp.depth = 1
"""


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for name in (xla_cache.VARIABLE, "GANLAB_XLA_CACHE_GB", "GANLAB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_folder_by_default_is_where_there_is_an_nvidia_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(xla_cache, "_DRIVER", tmp_path / "none")
    said = "off without an NVIDIA GPU; GANLAB_XLA_CACHE names a folder to keep programs in"
    assert xla_cache.describe() == ("ok", said)
    (tmp_path / "version").write_text("NVRM version: 570.1")
    monkeypatch.setattr(xla_cache, "_DRIVER", tmp_path / "version")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert xla_cache.describe() == ("ok", f"{tmp_path}/ganlab/xla: 0 programs, 0.00 of 2 GB")
    monkeypatch.setenv("GANLAB_CACHE", str(tmp_path / "mine"))
    monkeypatch.setenv("GANLAB_XLA_CACHE_GB", "0.5")
    assert xla_cache.describe() == ("ok", f"{tmp_path}/mine/xla: 0 programs, 0.00 of 0.5 GB")
    (tmp_path / "mine").chmod(0o777)
    assert xla_cache.describe()[0] == "note"
    monkeypatch.setenv("GANLAB_XLA_CACHE", "off")
    assert xla_cache.describe() == ("ok", "off")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("GANLAB_XLA_CACHE", "cache", "GANLAB_XLA_CACHE = 'cache' must be the whole path of a folder, or 'off'."),
        ("GANLAB_XLA_CACHE", "gs://bucket/x", "GANLAB_XLA_CACHE = gs://bucket/x is a URL"),
        ("GANLAB_XLA_CACHE_GB", "none", "GANLAB_XLA_CACHE_GB = 'none' must be a number of gigabytes above 0."),
        ("GANLAB_XLA_CACHE_GB", "-1", "GANLAB_XLA_CACHE_GB = '-1' must be a number of gigabytes above 0."),
        ("GANLAB_XLA_CACHE_GB", "inf", "GANLAB_XLA_CACHE_GB = 'inf' must be a number of gigabytes above 0."),
    ],
)
def test_invalid_values_are_refused_by_name(monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(xla_cache, "_decided_by", 0)
    with pytest.raises(ganlab.ConfigError, match="^" + re.escape(message)):
        xla_cache.prepare()
    assert xla_cache.describe()[0] == "note"


def test_started_tensorflow_is_reported_and_training_goes_on(cpus, monkeypatch, tmp_path):
    monkeypatch.setenv("GANLAB_XLA_CACHE", str(tmp_path))
    monkeypatch.setattr(xla_cache, "_decided_by", 0)
    with pytest.warns(UserWarning, match="TensorFlow has started without GANLAB_XLA_CACHE"):
        assert not xla_cache.fill(on_gpu=False)
    assert not xla_cache.fill(on_gpu=False)  # without another warning


def test_programs_are_told_apart_by_what_their_bits_depend_on(monkeypatch):
    def kind(*settings, **environment):
        with monkeypatch.context() as changed:
            for name, value in environment.items():
                changed.setenv(name, value)
            return xla_cache._kind(settings or (True, "float32"), False)

    plain = kind()
    assert kind(TF_CPP_MIN_LOG_LEVEL="1", TF_FORCE_GPU_ALLOW_GROWTH="true", HOME="/") == plain
    others = [
        kind(False, "float32"),
        kind(True, "tensorfloat32"),
        kind(XLA_FLAGS="--xla_cpu_enable_fast_math=true"),
        kind(TF_XLA_FLAGS="--tf_xla_auto_jit=2"),
        kind(TF_ENABLE_ONEDNN_OPTS="0"),
        kind(TF_NUM_INTRAOP_THREADS="7"),
        kind(TF_DETERMINISTIC_OPS="1"),
    ]
    assert len({plain, *others}) == 1 + len(others)


def test_functions_are_numbered_from_a_round_number():
    from tensorflow.python.framework.ops import uid

    before = uid()
    xla_cache.number_functions()
    assert uid() % 65536 == 1
    assert uid() - before <= 65536 + 2


# In turn, each in a process of its own: forks of one that has imported everything.
STAGES = """
import json, os, sys, traceback
from pathlib import Path
import ganlab
from ganlab.run import preload

preload()
from ganlab.composition import compose
from ganlab.runs.experiment_source import read_experiment
from ganlab.training import start

def train(run, seed=0, **options):
    start.train(compose(read_experiment(["small.gin"], [f"experiment.seed={seed}"])), run, **options)

def damage():
    for path in Path("cache").glob("tensorflow-*/*.pb"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2 : len(content) // 2 + 64] = bytes(64)
        path.write_bytes(content)

def stage(name, work, cache=os.path.abspath("cache"), count=1):
    children = []
    for k in range(count):
        children.append(os.fork())
        if not children[-1]:
            os.environ["GANLAB_XLA_CACHE"], code = cache, 1
            try:
                work(f"{name}{k}" if count > 1 else name)
                from ganlab.support import xla_cache
                xla_cache._close()
                code = 0
            except BaseException:
                traceback.print_exc()
            os._exit(code)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    found = {path.name[33:]: path.stat().st_mtime_ns for path in Path("cache").glob("tensorflow-*/*.pb")}
    print(json.dumps([name, codes, found, [path.name for path in Path("cache").glob(".room-*")]]), flush=True)

stage("off", train, cache="off")
stage("at_once", train, count=2)
stage("loaded", train)
stage("stopped", lambda name: train(name, stop_at=2))
stage("resumed", lambda name: train("stopped", resume=True))
stage("replayed", lambda name: print(json.dumps(len(ganlab.Run("loaded").replay(3).found))))
stage("seed_one", lambda name: train(name, seed=1))
damage()
stage("damaged", train)
"""


@pytest.mark.slow
def test_resumed_replayed_and_simultaneous_runs_and_other_seeds_share_one_program_and_keep_every_bit(tmp_path):
    (tmp_path / "small.gin").write_text(SMALL)
    done = subprocess.run([sys.executable, "-c", STAGES], cwd=tmp_path, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", "0", "1"))]
    differences = [line for line in lines if isinstance(line, int)]
    stages = {name: (codes, found, rooms) for name, codes, found, rooms in (s for s in lines if isinstance(s, list))}

    assert all(set(codes) == {0} for codes, _, _ in stages.values()), done.stderr
    assert all(rooms == [] for _, _, rooms in stages.values())
    assert stages["off"][1] == {}
    order = ["at_once", "loaded", "stopped", "resumed", "replayed", "seed_one", "damaged"]
    assert all(len(stages[name][1]) == 1 for name in order)  # one program, under one name
    assert len({name for stage in order for name in stages[stage][1]}) == 1
    used = [time for name in order for time in stages[name][1].values()]
    assert used == sorted(set(used))  # each has used it, and the last has compiled it anew
    assert differences == [0]
    rows = {
        name: (tmp_path / name / "metrics.jsonl").read_bytes()
        for name in ("off", "at_once0", "at_once1", "loaded", "stopped", "damaged")
    }
    assert len(rows["off"].splitlines()) >= 4
    assert set(rows.values()) == {rows["off"]}
    assert (tmp_path / "seed_one" / "metrics.jsonl").read_bytes() != rows["off"]


_COMPILED = re.compile(r"Compiling \[.*\] for CPU using JIT time: .*? \((\d+) us\)")
_LOADED = re.compile(r"(?:Try loading serialized cache entry|Verifying loaded cache entry).* time: .*? \((\d+) us\)")


def seconds_of_compiling(sweep, trials):
    """The seconds that XLA compiled, and that its programs were read instead, by TensorFlow's own log."""
    logs = [path.read_text(errors="replace") for path in sorted(sweep.rglob("*log*")) if path.is_file()]
    assert sum("Compiled cluster using XLA" in log for log in logs) == trials
    return tuple(sum(int(us) for log in logs for us in sought.findall(log)) / 1e6 for sought in (_COMPILED, _LOADED))


@pytest.mark.slow
def test_second_start_of_a_sweep_compiles_for_less_than_a_quarter_of_the_first(tmp_path):
    (tmp_path / "small.gin").write_text(SMALL)
    timed = "cpu_compiler=1,device_executable_persistor=1"
    environment = {**os.environ, "GANLAB_XLA_CACHE": str(tmp_path / "cache")}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": timed}
    command = [sys.executable, "-m", "ganlab", "sweep", "--gin", "small.gin", "--seeds", "0..0", "--jobs", "1"]
    command += ["--grid", "optimizers.adam.learning_rate=[1e-4, 1e-3]", "--runs", "runs", "--name"]
    for name in ("first", "second"):
        done = subprocess.run([*command, name], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    first, second = (sorted((tmp_path / "runs" / name).rglob("metrics.jsonl")) for name in ("first", "second"))
    assert len(first) == len(second) == 2
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    # A learning rate without a schedule is no part of a program: the second trial has read that of the first.
    assert len(list((tmp_path / "cache").glob("tensorflow-*/*.pb"))) == 1
    compiled, read = seconds_of_compiling(tmp_path / "runs" / "first", trials=2)
    assert compiled > 0.5
    again, instead = seconds_of_compiling(tmp_path / "runs" / "second", trials=2)
    assert instead > 0
    assert again + instead < (compiled + read) / 4
