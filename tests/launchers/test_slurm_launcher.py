"""Slurm through submitit, on a cluster made of scripts: the requests to it, and the ends of jobs."""

import json
import os
import signal
import sys
import time

import ganlab_builtin.launchers.slurm
import pytest
from jobs import status

import ganlab

pytest.importorskip("submitit", reason="submitit is of the extra [slurm]")
pytestmark = pytest.mark.slow

SLEEPS = "import time; print('is training', flush=True); time.sleep(60)"


def submitit(**arguments):
    return ganlab.component("launchers", "submitit")(**arguments)


@pytest.fixture
def impatient(monkeypatch):
    """Slurm is asked more often about jobs that were stopped."""
    monkeypatch.setattr(ganlab_builtin.launchers.slurm, "_FORCE_SECONDS", 0.1)


def options(cluster):
    """The sbatch options of the only job."""
    lines = (cluster / "1001" / "script").read_text().splitlines()
    return dict(line.removeprefix("#SBATCH --").partition("=")[::2] for line in lines if line.startswith("#SBATCH"))


def test_parameters_are_passed_to_sbatch(slurm, tried):
    launcher = submitit(
        partition="gpu",
        time_minutes=90,
        mem_gb=1.5,
        cpus_per_task=4,
        gpus_per_node=2,
        save_seconds=300,
        slurm={"qos": "low", "exclusive": True},
    )
    assert status(tried(launcher, "")) == 0
    asked = options(slurm)
    assert asked.pop("output").endswith("_0_log.out")
    assert asked.pop("error").endswith("_0_log.err")
    assert asked == {
        "partition": "gpu",
        "time": "90",
        "mem": "1536MB",
        "cpus-per-task": "4",
        "gpus-per-node": "2",
        "nodes": "1",
        "ntasks-per-node": "1",
        "signal": "USR2@300",
        "qos": "low",
        "exclusive": "",
        "no-requeue": "",
        "job-name": "log",
        "open-mode": "append",
        "wckey": "submitit",
    }


def test_missing_parameters_are_left_to_the_cluster(slurm, tried):
    assert status(tried(submitit(), "")) == 0
    assert not {"partition", "time", "mem", "cpus-per-task", "gpus-per-node"} & set(options(slurm))


def test_submitits_files_lie_beside_the_log(slurm, tried, tmp_path):
    assert status(tried(submitit(), "")) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster", "log.txt", "submitit"]
    (own,) = (tmp_path / "submitit").iterdir()
    assert own.name.startswith("log-")
    assert (own / "1001_submitted.pkl").is_file()


@pytest.mark.parametrize("number", [signal.SIGUSR2, signal.SIGTERM])
def test_near_the_time_limit_and_when_preempted_a_trial_saves(slurm, tried, wait_for_log, number):
    saving = "import signal, sys\nsignal.signal(15, lambda *_: (print('saved', flush=True), sys.exit(143)))\n" + SLEEPS
    job = tried(submitit(), saving.replace("; ", "\n"))
    wait_for_log("is training")
    os.kill(int((slurm / "1001" / "task-0").read_text()), number)
    assert status(job) == 143
    assert wait_for_log("saved").count("saved") == 1


@pytest.mark.parametrize(
    ("state", "expected"), [("TIMEOUT", 124), ("OUT_OF_MEMORY", 137), ("NODE_FAIL", 137), ("PREEMPTED", 143)]
)
def test_a_job_without_a_result_has_the_status_from_slurm(slurm, tried, wait_for_log, state, expected):
    (slurm / "hold").touch()
    job = tried(submitit(), "")
    assert job.poll() is None
    (slurm / "1001" / "state").write_text(state)
    assert status(job) == expected
    assert f"The job 1001 ended without a result: {state}." in wait_for_log("ended")


def test_a_job_that_waits_leaves_the_queue(slurm, tried, impatient):
    (slurm / "hold").touch()
    job = tried(submitit(), "")
    assert job.poll() is None
    job.stop()
    assert status(job) == 143
    assert (slurm / "1001" / "state").read_text() == "CANCELLED by 1000\n"


def test_a_job_that_leaves_the_queue_after_its_sweep_died_ends(slurm, tried, wait_for_log):
    job = tried(submitit(orphan_seconds=2), SLEEPS)
    wait_for_log("is training")
    # Nothing polls, so it hears nothing more.
    (own,) = (slurm.parent / "submitit").iterdir()
    for _ in range(100):
        if (own / "1001_0_result.pkl").exists():
            break
        time.sleep(0.1)
    assert job.poll() == 143


def test_on_several_nodes_each_has_its_part_of_one_cluster(slurm, tried, tmp_path):
    code = "import os; print(os.environ['TF_CONFIG']); raise SystemExit(int(os.environ['SLURM_PROCID']) * 5)"
    assert status(tried(submitit(nodes=2), code)) == 5
    configurations = [json.loads((tmp_path / name).read_text()) for name in ("log.txt", "log-1.txt")]
    workers = ["node1:21001", "node2:21001"]
    assert configurations == [
        {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}} for index in (0, 1)
    ]


def test_a_busy_server_is_asked_again(slurm, tried, monkeypatch):
    monkeypatch.setattr(ganlab_builtin.launchers.slurm, "_BUSY_SECONDS", (0.1,))
    (slurm / "busy").touch()
    assert status(tried(submitit(), "")) == 0


def test_a_refusal_quotes_slurm(slurm, tried):
    refused = r"refuses the job .*sbatch: error: invalid partition specified: nowhere"
    with pytest.raises(ganlab.ConfigError, match=refused):
        tried(submitit(partition="nowhere"), "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cluster": "slurm"}, "launchers.submitit.cluster = 'slurm' needs srun on PATH"),
        ({"nodes": 2}, "launchers.submitit.nodes = 2 must be 1 without Slurm"),
        ({"time_minutes": 0}, "launchers.submitit.time_minutes = 0 must be a whole number of at least 1"),
        ({"gpus_per_node": -1}, "launchers.submitit.gpus_per_node = -1 must be a whole number of at least 0"),
    ],
)
def test_invalid_values_are_refused(arguments, message):
    with pytest.raises(ganlab.ConfigError, match=message):
        submitit(**arguments)


def test_without_submitit_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(ganlab.MissingDependencyError, match=r"pip install -e '\.\[slurm\]'"):
        submitit()


@pytest.mark.parametrize("cluster", ["slurm", "local"])
def test_jobs_import_nothing_from_the_working_directory(slurm, tried, tmp_path, monkeypatch, cluster):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    for name in ("json", "submitit", "cloudpickle"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    assert status(tried(submitit(cluster=cluster), "")) == 0
    assert not (tmp_path / "executed").exists()
