"""Where a benchmark runs, and which interpreters have what ganlab is compared with."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

# Prints the names of the GPUs that a library sees, after a word that others do not print.
_NAMES = {
    "TensorFlow": "import tensorflow as tf; d = tf.config.experimental.get_device_details; "
    "print('GPUs:', *(d(g).get('device_name', 'a GPU') for g in tf.config.list_physical_devices('GPU')), sep='\\n')",
    "PyTorch": "from torch import cuda; "
    "print('GPUs:', *map(cuda.get_device_name, range(cuda.device_count())), sep='\\n')",
    "JAX": "import jax; print('GPUs:', *(d.device_kind for d in jax.devices() if d.platform == 'gpu'), sep='\\n')",
}
_REMEDIES = {
    "TensorFlow": "Install ganlab's extra [gpu] and NVIDIA's driver",
    "PyTorch": "Install its build for CUDA in that environment",
    "JAX": "Install jax[cuda12] in that environment",
}


@dataclass(frozen=True)
class Setting:
    """Where a benchmark runs.

    Attributes:
        device: `cpu` or `gpu`, the first of them.
        torch: An interpreter that has PyTorch; empty to leave it out.
        jax: One that has JAX; empty to leave it out.
        precisions: Those of the rows on a GPU.
        jits: What XLA compiles in ganlab's rows there, as `experiment.jit` has it.
        start: The most seconds to the first iteration there.
    """

    device: str = "cpu"
    torch: str = ""
    jax: str = ""
    precisions: tuple[str, ...] = ("float32",)
    jits: tuple[str, ...] = ("auto",)
    start: float = 300.0

    def look(self) -> tuple[str, str]:
        """Why it cannot be measured, and what to do, empty if it can; and the name of the GPU."""
        options = {"PyTorch": ("--torch", self.torch), "JAX": ("--jax", self.jax)}
        pythons = {name: python for name, (_, python) in options.items() if python}
        if self.device == "gpu":
            pythons = {"TensorFlow": sys.executable, **pythons}
        card = ""
        with ThreadPoolExecutor() as pool:
            looks = list(pool.map(_gpus, pythons, pythons.values()))
        for (name, python), (seen, error) in zip(pythons.items(), looks, strict=True):
            if seen is None:
                option = f"{options[name][0]} {python}: " if name in options else ""
                return f"{option}{name} cannot be imported there ({error}). Name an interpreter that has it.", ""
            if self.device == "gpu" and not seen:
                return f"--device gpu: {name} ({python}) sees no GPU. {_REMEDIES[name]}, or use --device cpu.", ""
            card = card or next(iter(seen), "")
        return "", card


def environment(device: str) -> dict[str, str]:
    """Variables of a peer's process: it sees that device alone, and takes of a GPU's memory what it needs."""
    if device == "cpu":
        return {"CUDA_VISIBLE_DEVICES": "-1"}
    return {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def _gpus(name: str, python: str) -> tuple[list[str] | None, str]:
    """The names of the GPUs that a library sees; or None and the last line of the error if it cannot be imported."""
    given = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run([python, "-c", _NAMES[name]], capture_output=True, text=True, check=False, env=given)
    except OSError as error:
        return None, str(error)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return done.stdout.rpartition("GPUs:")[2].split("\n")[1:-1], ""
