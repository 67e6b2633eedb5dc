"""The contract of every launcher: environment, folder, log, exit statuses as in shells, and signals."""

import os
import signal
import subprocess
import sys

import pytest
from jobs import SAVING, alive, status, sweep, until

import ganlab

# Prints what it was given, and ends with the given status.
GIVEN = """
import os, sys
print(os.environ["COLOUR"], os.environ["OMP_NUM_THREADS"], os.environ["FROM_THE_SWEEP"], os.getcwd(), flush=True)
print("an error", file=sys.stderr)
sys.exit(int(os.environ["STATUS"]))
"""

LAUNCHERS = ["local", *(pytest.param(name, marks=pytest.mark.slow) for name in ("submitit", "slurm", "ray"))]


@pytest.fixture(params=LAUNCHERS)
def launcher(request, monkeypatch):
    monkeypatch.setenv("FROM_THE_SWEEP", "yes")
    if request.param == "ray":
        return request.getfixturevalue("ray_launcher")
    if request.param != "local":
        pytest.importorskip("submitit", reason="submitit is of the extra [slurm]")
    if request.param == "slurm":
        request.getfixturevalue("slurm")
        return ganlab.component("launchers", "submitit")()
    return ganlab.component("launchers", request.param)(**({"cluster": "local"} if request.param == "submitit" else {}))


def test_it_passes_environment_folder_and_status_and_appends_to_the_log(launcher, tried, wait_for_log, tmp_path):
    (tmp_path / "log.txt").write_text("what was there\n")
    jobs = []
    for n in (0, 3):  # in turn: side by side their lines could mix
        jobs.append(tried(launcher, GIVEN, COLOUR="red", OMP_NUM_THREADS="3", STATUS=str(n)))
        assert status(jobs[-1]) == n, wait_for_log("")
    assert [job.poll() for job in jobs] == [0, 3]  # and so it stays
    lines = wait_for_log("error").splitlines()
    assert lines[0] == "what was there"
    assert sorted(lines[1:]) == sorted([f"red 3 yes {tmp_path}", "an error"] * 2)


def test_the_exit_status_after_a_signal_is_128_plus_its_number(launcher, tried):
    assert status(tried(launcher, "import os; os.kill(os.getpid(), 9)")) == 137


@pytest.mark.slow
def test_a_job_that_is_stopped_saves_first(launcher, tried, wait_for_log):
    job = tried(launcher, SAVING)
    wait_for_log("is training")
    assert job.poll() is None
    job.stop()
    job.stop()
    assert status(job) == 143
    assert wait_for_log("saved").count("saved") == 1
    job.stop()  # one that has ended is left alone


@pytest.mark.slow
def test_a_job_that_is_stopped_at_once_ends_as_if_it_had_begun(launcher, tried):
    job = tried(launcher, "import time; time.sleep(60)")
    job.stop()
    assert status(job) == 143


@pytest.mark.slow
def test_a_missing_command_is_reported_in_the_log(launcher, tmp_path, wait_for_log):
    job = launcher.start(["/no/such/python"], environment={}, folder=tmp_path, log=tmp_path / "log.txt")
    assert status(job) == 127
    assert wait_for_log("cannot be started") == "/no/such/python cannot be started: No such file or directory.\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("local", {}),
        ("submitit", {"cluster": "local", "orphan_seconds": 3}),
        ("ray", {}),
    ],
)
def test_no_job_outlives_a_sweep_that_was_killed(name, arguments, tmp_path, wait_for_log):
    if name != "local":
        pytest.importorskip(name, reason=f"{name} is of an extra")
    process = subprocess.Popen([sys.executable, "-c", sweep(name, arguments, SAVING)], cwd=tmp_path)
    number = int(wait_for_log("is training").split()[1])
    process.kill()
    process.wait()
    until(lambda: not alive(number), 20)
    if name != "ray":  # which kills the processes of an actor outright
        assert "saved" in (tmp_path / "log.txt").read_text()


@pytest.mark.slow
def test_ctrl_c_at_the_terminal_reaches_only_the_sweep(tmp_path, wait_for_log):
    pytest.importorskip("submitit", reason="submitit is of the extra [slurm]")
    # As a terminal does it: SIGINT to every process in the sweep's process group.
    slowly = SAVING.replace('print("saved"', 'time.sleep(3); print("saved"')
    code = sweep("submitit", {"cluster": "local"}, slowly)
    code = f"import signal; signal.signal(signal.SIGINT, lambda *_: job.stop())\n{code}\nprint(job.poll())"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    wait_for_log("is training")
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=200)[0] == "143\n"
    assert "saved" in (tmp_path / "log.txt").read_text()
