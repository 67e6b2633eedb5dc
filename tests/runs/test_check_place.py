"""Checks of a run's place before anything is created there."""

import subprocess
import sys

import pytest

from ganlab.errors import RunError
from ganlab.runs import check_place


def test_check_place_creates_nothing(tmp_path):
    check_place(tmp_path / "runs" / "quickstart" / "base")
    check_place(tmp_path / "with space" / "größe" / "base")
    assert list(tmp_path.iterdir()) == []


def test_check_place_refuses_a_dangling_link(tmp_path):
    (tmp_path / "runs").symlink_to(tmp_path / "gone")
    with pytest.raises(RunError, match=r"cannot be created: .*runs is not a folder"):
        check_place(tmp_path / "runs" / "quickstart" / "base")


def test_check_place_refuses_a_full_disk(tmp_path):
    # A limit on the size of files stands in for a full disk: the same write fails.
    code = """
import resource, signal, sys
from pathlib import Path
from ganlab.errors import RunError
from ganlab.runs import check_place
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    check_place(Path(sys.argv[1]) / "runs" / "quickstart" / "base")
except RunError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    place = tmp_path / "runs" / "quickstart" / "base"
    assert done.stdout == f"The run's directory {place} cannot be created: File too large. Choose another --runs.\n"
    assert list(tmp_path.iterdir()) == []
