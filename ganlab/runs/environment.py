"""Records the environment that the last bits of a run's numbers depend on: packages, threads, devices, switches."""

from __future__ import annotations

import contextlib
import os
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ganlab.fingerprints import digest
from ganlab.plugins.manager import Plugin
from ganlab.runs.provenance import PACKAGES, versions
from ganlab.version import DISTRIBUTION, __version__

# Switches of TensorFlow, XLA and the libraries below them that decide how and in which order numbers are added.
_VARIABLES = (
    "TF_ENABLE_ONEDNN_OPTS",
    "ONEDNN_MAX_CPU_ISA",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "XLA_FLAGS",
    "TF_XLA_FLAGS",
    "TF_DETERMINISTIC_OPS",
    "TF_CUDNN_DETERMINISTIC",
    "TF_CUDNN_USE_AUTOTUNE",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "TF_DISABLE_MKL",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)


def environment(plugins: Sequence[Plugin], compiled: Sequence[str]) -> dict[str, Any]:
    """Collects the environment of this process.

    Args:
        plugins: The plugins of this process.
        compiled: The parts of the step that XLA compiles.

    Returns:
        Plain values by name: versions, threads, devices, the processor, precision, and the environment variables that
        are set.
    """
    import keras
    import tensorflow as tf

    facts: dict[str, Any] = {"python": platform.python_version(), "ganlab": __version__, **versions(PACKAGES)}
    facts["ganlab's own source"] = _source()
    facts |= {f"plugin {row.name}": row.version for row in plugins if row.version and row.distribution != DISTRIBUTION}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threading = tf.config.threading
    # Zero leaves the choice to the environment and then to TensorFlow, which uses one thread per core.
    inside, between = threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads()
    facts["threads in an operation"] = inside or _threads("TF_NUM_INTRAOP_THREADS") or cores
    facts["threads between operations"] = between or _threads("TF_NUM_INTEROP_THREADS") or cores
    facts["processor"] = _processor()
    facts["devices"] = _devices()
    facts["compiled by XLA"] = ", ".join(compiled) or "nothing"
    facts["deterministic operations"] = _deterministic()
    facts["keras floats"] = keras.config.floatx()
    facts |= {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return facts


def _source() -> str:
    """A hash of ganlab's files, because the version stays the same from one commit to the next."""
    folder = Path(__file__).resolve().parents[1]
    paths = sorted(folder.rglob("*.py"))
    return digest(b"\0".join(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() for path in paths))


def _threads(name: str) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else 0


def _devices() -> str:
    """The number of devices of each kind: `4 CPU, 2 GPU (NVIDIA H200)`."""
    import tensorflow as tf

    kinds = Counter(device.device_type for device in tf.config.list_logical_devices())
    models = set()
    for device in tf.config.list_physical_devices("GPU"):
        details = tf.config.experimental.get_device_details(device)
        models.add(str(details.get("device_name", "unknown")))
    named = {"GPU": f" ({', '.join(sorted(models))})" if models else ""}
    return ", ".join(f"{count} {kind}{named.get(kind, '')}" for kind, count in sorted(kinds.items()))


def _deterministic() -> bool:
    try:
        from tensorflow.python.framework.config import is_op_determinism_enabled  # no public name
    except ImportError:
        return False
    return bool(is_op_determinism_enabled())


def _processor() -> str:
    """The processor's model name on Linux; elsewhere the architecture."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
