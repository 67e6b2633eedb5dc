"""The tool that measures the tab."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromedriver") is None, reason="needs a browser and its driver")
def test_tool_measures_small_runs():
    pytest.importorskip("selenium")
    command = [sys.executable, ROOT / "tools" / "tab_speed.py", "--runs", "6", "--rows", "200", "--refreshes", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "6 runs of 200 rows" in done.stdout, done.stderr
    assert float(re.search(r"first picture: ([\d.]+) s", done.stdout)[1]) > 0
    assert "all rows read" in done.stdout
    assert int(re.search(r"at most: (\d+) MB", done.stdout)[1]) < 500
