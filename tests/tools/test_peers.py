"""The peers of the benchmarks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.mark.slow
def test_a_peer_without_a_gpu_says_so():
    command = [sys.executable, str(TOOLS / "peers" / "tf_loop.py"), "mlp", "--device", "gpu"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"].startswith("TensorFlow sees no GPU. Install the extra")
