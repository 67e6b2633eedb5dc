"""docs/trackers.md: its examples work, and its promises hold."""

import csv
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import workers
from command_lines import command
from pages import blocks, files_and_commands
from tracked import SMALL, logged, params

import ganlab

FILES, COMMANDS = files_and_commands(blocks("docs/trackers.md"))


def arguments(tracker, name, settings=SMALL):
    return ["run", "--gin", "quickstart", "--name", name, "--plugin-file", tracker, *params(settings)]


def table(run):
    """The expected rows of metrics.csv, from metrics.jsonl."""
    return [["step", "metric", "replica", "value"], *([str(cell) for cell in row] for row in logged(run))]


def read(run):
    with (run.path / "metrics.csv").open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.slow
def test_csv_file_has_every_row(here, cpus):
    command(*arguments("csv_tracker.py", "csv"))
    run = ganlab.Run("runs/quickstart/csv")
    assert read(run) == table(run)
    assert {row[0] for row in read(run)[1:]} == {"2", "4", "6"}
    assert {row[2] for row in read(run) if row[1] == "critic/loss"} == {"", "0", "1"}


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_csv_file_of_a_resumed_run_has_every_row_once(here, ending):
    # The tracker ends its own process at step 5: by SIGKILL past the checkpoint of step 4; by SIGTERM at the end of the
    # chunk, step 8, whose evaluation the resumed run does later.
    source = FILES["csv_tracker.py"].replace(
        "def ganlab_metrics(run, records):",
        "def ganlab_metrics(run, records):\n"
        "    import os, pathlib\n    pathlib.Path('seen.txt').open('a').write(f'{records[0].step} ')\n"
        f"    if records[0].step == 5 and 'END' in os.environ:\n        os.kill(os.getpid(), {int(ending)})",
    )
    (here / "csv_tracker.py").write_text(source)
    command = [sys.executable, "-m", "ganlab"]
    begin = [*command, *arguments("csv_tracker.py", "it", {**SMALL, "experiment.log_every": 1, "experiment.steps": 12})]
    done = subprocess.run(begin, env={**os.environ, "END": "1"}, capture_output=True, text=True)
    assert done.returncode == (-9 if ending == signal.SIGKILL else 143), done.stderr
    resume = [*command, "run", "--resume", "runs/quickstart/it", "--plugin-file", "csv_tracker.py"]
    done = subprocess.run(resume, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run = ganlab.Run("runs/quickstart/it")
    assert read(run) == table(run)
    assert sorted({int(row[0]) for row in read(run)[1:]}) == list(range(1, 13))
    seen = [int(word) for word in Path("seen.txt").read_text().split()]
    assert seen == ([*range(1, 6), *range(5, 13)] if ending == signal.SIGKILL else [*range(1, 9), *range(8, 13)])


@pytest.mark.slow
def test_only_the_chief_worker_calls_a_tracker(here):
    (here / "spy.py").write_text(
        "import os, ganlab\n"
        "def note(what):\n    open(f'seen-{os.environ[\"WORKER\"]}', 'a').write(what + ' ')\n"
        "@ganlab.hookimpl\ndef ganlab_run_start(run):\n    note('start')\n"
        "@ganlab.hookimpl\ndef ganlab_metrics(run, records):\n    note(str(records[0].step))\n"
        "@ganlab.hookimpl\ndef ganlab_run_end(run, status):\n    note(status)\n"
    )
    settings = {name: value for name, value in SMALL.items() if not name.startswith("strategies")}
    command = arguments("spy.py", "both", settings={**settings, "experiment.strategy": "@strategies.multi_worker()"})
    hosts = workers.free_addresses(2)
    started = [
        workers.start(here, *command[1:], TF_CONFIG=workers.config(hosts, index), WORKER=str(index))
        for index in range(2)
    ]
    codes, outputs = workers.ended(started)
    assert codes == [0, 0], outputs
    assert [path.name for path in here.glob("seen-*")] == ["seen-0"]
    assert Path("seen-0").read_text() == "start 2 4 6 completed "


def test_commands_on_the_page_use_its_files():
    assert set(FILES) == {"csv_tracker.py"}
    assert [line for line in COMMANDS if line.startswith("ganlab ")] == [
        f"ganlab run --gin quickstart --plugin-file {name}" for name in FILES
    ]
