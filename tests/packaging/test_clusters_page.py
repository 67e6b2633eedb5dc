"""docs/clusters.md: its files, as their schedulers run them, with signals and kills."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest
import yaml
from pages import ROOT, blocks

FILES = {name: text for _, name, text in blocks("docs/clusters.md") if name}
RING = f"include '{ROOT}/tools/killing/million.gin'\nexperiment.steps = 8000\nexperiment.log_every = 50\n"
JOB, SKY = yaml.safe_load(FILES["job.yaml"])["spec"], yaml.safe_load(FILES["sky.yaml"])
CONTAINER = JOB["template"]["spec"]["containers"][0]
COMMANDS = {
    "loop.sh": ["sh", "-c", FILES["loop.sh"]],
    "job.sh": ["bash", "-c", FILES["job.sh"]],
    "job.yaml": CONTAINER["command"],
    "sky.yaml": ["bash", "-c", SKY["run"]],
    "startup.sh": ["bash", "-c", FILES["startup.sh"].replace("@strategies.tpu()", "@strategies.one_device()")],
}


@pytest.fixture
def start(tmp_path):
    """Starts the command of a file of the page in a machine's place, where /shared is a folder of the test."""

    def script(name, text):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)

    def start(name, **variables):
        path = f"{tmp_path / 'bin'}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "SLURM_JOB_ID": "7", **variables, "PATH": path}
        words = [word.replace("/shared", str(tmp_path)) for word in COMMANDS[name]]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            words, cwd=tmp_path, env=environment, stdout=pipe, stderr=subprocess.STDOUT, start_new_session=True
        )

    (tmp_path / "bin").mkdir()
    (tmp_path / "ring.gin").write_text(RING)
    script("sleep", "exit 0")
    script("scontrol", f'echo "$@" >> {tmp_path}/queue')
    start.script, start.folder = script, tmp_path
    return start


@pytest.mark.parametrize(
    ("name", "codes", "ends"),
    [
        ("loop.sh", [75, 137, 0], 0),
        ("loop.sh", [143], 143),
        ("loop.sh", [1], 1),
        ("job.sh", [0], 0),
        ("job.sh", [75], 75),
        ("job.sh", [143], 143),
        ("job.sh", [2], 2),
        ("sky.yaml", [75, 75, 0], 0),
        ("sky.yaml", [1], 1),
        ("startup.sh", [143, 137, 75, 0], 0),
        ("startup.sh", [2], 2),
    ],
)
def test_the_loops_repeat_what_may_be_repeated(start, name, codes, ends):
    (start.folder / "codes").write_text("".join(f"{code}\n" for code in codes))
    start.script("ganlab", f"code=$(head -n 1 {start.folder}/codes); sed -i 1d {start.folder}/codes; exit $code")
    process = start(name)
    assert (process.communicate(timeout=60)[0], process.returncode) == (b"", ends)
    assert (start.folder / "codes").read_text() == ""
    again = name == "job.sh" and codes[0] in (75, 143)
    assert (start.folder / "queue").exists() == again
    if again:
        assert (start.folder / "queue").read_text() == "requeue 7\n"


def test_kubernetes_counts_only_failures():
    assert JOB["template"]["spec"]["restartPolicy"] == "Never"  # which the policy below needs
    ended, passing, lost = JOB["podFailurePolicy"]["rules"]
    assert [rule["action"] for rule in (ended, passing, lost)] == ["FailJob", "Ignore", "Ignore"]
    assert [rule["onExitCodes"]["values"] for rule in (ended, passing)] == [[2], [75, 143]]


def trains(run):
    """Waits until a run trains, and returns the process that does."""
    end = time.monotonic() + 500
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):
            if (run / "metrics.jsonl").stat().st_size:
                return int((run / "lock.json").read_text().split('"pid": ')[1].split(",")[0])
        time.sleep(0.02)
    raise AssertionError("It never trains.")


def differences(one, other):
    """How two runs differ, apart from whether their seed and strategy were given on the command line or in the file."""
    from killing.equality import differing_runs

    from ganlab.run import Run

    return [found for found in differing_runs(Run(one), Run(other)) if found != "event (0, 'experiment'): differs"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The run that no machine was taken from."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "ring.gin").write_text(RING)
    words = [sys.executable, "-m", "ganlab", "run", "ring.gin", "--name", "s0"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return folder / "runs" / "ring" / "s0"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sent", "codes"),
    [
        ("job.sh", signal.SIGTERM, [143, 0]),
        ("job.yaml", signal.SIGTERM, [143, 0]),
        ("sky.yaml", signal.SIGKILL, [-signal.SIGKILL, 0]),
        ("startup.sh", None, [0]),
    ],
)
def test_a_run_whose_machine_is_taken_equals_one_that_was_left_alone(start, undisturbed, name, sent, codes):
    run = start.folder / "runs" / "ring" / ("s0" if name == "job.sh" else "first")
    first = start(name)
    trainer = trains(run)
    if sent == signal.SIGTERM:
        first.send_signal(sent)
    elif sent:
        os.killpg(first.pid, sent)  # the machine is gone
    else:
        os.kill(trainer, signal.SIGKILL)  # the loop starts it again
    ended = [first.wait(500)]
    while len(ended) < len(codes):
        ended.append(start(name).wait(500))
    assert ended == codes
    assert differences(undisturbed, run) == []
    if name == "job.sh":
        assert (start.folder / "queue").read_text() == "requeue 7\n"


@pytest.mark.slow
def test_ray_repeats_the_task_of_a_lost_process(start, undisturbed):
    pytest.importorskip("ray", reason="Ray is of the extra [ray], which is too large for every test environment")
    text = FILES["train_on_ray.py"].replace("/shared", str(start.folder)).replace("range(2)", "range(1)")
    COMMANDS["ray"] = [sys.executable, "-c", text]
    driver, run = start("ray", RAY_USAGE_STATS_ENABLED="0"), start.folder / "runs" / "ring" / "s0"
    os.kill(trains(run), signal.SIGKILL)
    assert (driver.wait(500), driver.stdout.read().splitlines()[-1]) == (0, b"['completed']")
    assert differences(undisturbed, run) == []
