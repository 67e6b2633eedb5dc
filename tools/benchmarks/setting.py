"""The device that a benchmark runs on."""

from __future__ import annotations

import os
import subprocess
import sys

_COUNT = "import tensorflow as tf; print(len(tf.config.list_physical_devices('GPU')))"


def problem(device: str) -> str:
    """Why `cpu` or `gpu`, the first of them, cannot be measured, and what to do; empty if it can."""
    if device == "cpu":
        return ""
    given = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, "-c", _COUNT], capture_output=True, text=True, check=False, env=given)
    if done.returncode == 0 and int(done.stdout.split()[-1]):
        return ""
    return (
        "--device gpu: TensorFlow sees no GPU. Install ganlab's extra [gpu] and NVIDIA's driver, or use --device cpu."
    )


def environment(device: str) -> dict[str, str]:
    """Variables of a peer's process: it sees that device alone, and takes of a GPU's memory what it needs."""
    return {"CUDA_VISIBLE_DEVICES": "-1"} if device == "cpu" else {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}
