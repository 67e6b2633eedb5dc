"""One sweep through each launcher: the same bits."""

import os
import subprocess
import sys

import pytest

EXPERIMENT = """
include 'eight_gaussians'
experiment.strategy = @strategies.one_device()
experiment.evaluate_every = 0
experiment.batch_size = 32
experiment.critic_steps = 2
experiment.steps = 30
experiment.log_every = 3
architectures.mlp.width = 16
"""

LAUNCHERS = {
    "local": [],
    "process": ["--launcher", "local", "--launcher-option", "fork=False"],
    "submitit": ["--launcher-option", "cluster=local"],
    "ray": [],
}


@pytest.mark.slow
def test_every_launcher_trains_the_same_bits(tmp_path):
    pytest.importorskip("submitit", reason="submitit is of the extra [slurm]")
    pytest.importorskip("ray", reason="Ray is of the extra [ray], which is too large for every test environment")
    (tmp_path / "ring.gin").write_text(EXPERIMENT)
    sweep = [sys.executable, "-m", "ganlab", "sweep", "--gin", "ring.gin", "--jobs", "2", "--threads", "1"]
    sweep += ["--grid", "constraints.gradient_penalty.weight=[1, 10]", "--seeds", "3"]
    found = {}
    for name, options in LAUNCHERS.items():
        done = subprocess.run(
            [*sweep, "--name", name, *(options if "--launcher" in options else ["--launcher", name, *options])],
            cwd=tmp_path,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        runs = tmp_path / "runs" / name
        found[name] = {path.relative_to(runs).as_posix(): path.read_bytes() for path in runs.glob("*/s3/metrics.jsonl")}
    assert sorted(found["local"]) == [f"gradient_penalty.weight={n}/s3/metrics.jsonl" for n in (1, 10)]
    assert all(text.count(b"\n") == 10 for text in found["local"].values())
    assert len(set(found["local"].values())) == 2
    assert found["process"] == found["local"]
    assert found["submitit"] == found["local"]
    assert found["ray"] == found["local"]
