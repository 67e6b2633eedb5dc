"""Summaries of runs, and the processes that hold them."""

import os
import socket
import subprocess
import sys

import pytest
from ganlab_runs.list_command import draw
from ganlab_runs.listing import look_at
from resting_runs import contents, make
from rich.console import Console
from rich.table import Table

from ganlab.runs.lock import holder, locked


def test_size_counts_links_not_their_targets(tmp_path):
    path = make(tmp_path / "one").path
    before = look_at(path).bytes
    assert before == sum(map(len, contents(path).values()))
    (tmp_path / "large").write_bytes(b"x" * 100_000)
    (path / "link").symlink_to(tmp_path / "large")
    (path / "up").symlink_to(tmp_path)
    assert look_at(path).bytes - before < 1000


def test_status_is_killed_without_a_process(tmp_path):
    run = make(tmp_path / "one", status="running")
    assert look_at(run.path).status == "killed"
    assert holder(run.path) is None
    with locked(run):
        assert look_at(run.path).status == "running"
        assert holder(run.path) == f"process {os.getpid()} on {socket.gethostname()}"
    assert look_at(run.path).status == "killed"


def test_killed_process_holds_no_lock(tmp_path):
    run = make(tmp_path / "one", status="running")
    code = """
import sys, time
from ganlab.run import Run
from ganlab.runs.lock import locked
with locked(Run(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(run.path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    assert holder(run.path) == f"process {process.pid} on {socket.gethostname()}"
    process.kill()
    process.wait()
    process.stdout.close()
    assert (run.path / "lock.json").exists()
    assert holder(run.path) is None
    assert look_at(run.path).status == "killed"


@pytest.mark.parametrize("width", [50, 60, 61, 200])
@pytest.mark.parametrize("terminal", [False, True])
def test_rows_are_as_rich_draws_them(width, terminal, capsys):
    rows = [["runs/w=10,表 *", "12/40"], ["é😀", "7/40"], ["a" * 53, ""]]  # of 60 columns
    rows = rows if width < 200 else rows[:2]
    console = Console(file=sys.stdout, width=width, highlight=False, force_terminal=terminal)
    tables = [Table(box=None, header_style="bold", pad_edge=False) for _ in range(2)]
    for table in tables:
        table.add_column("run", overflow="fold", min_width=20)
        table.add_column("step", justify="right", no_wrap=True)
    for row in rows:
        tables[0].add_row(*row)
    console.print(tables[0])
    drawn = capsys.readouterr().out
    draw(console, tables[1], rows)
    assert capsys.readouterr().out == drawn
    assert len(drawn.splitlines()) == {50: 5, 200: 3}.get(width, 4)
