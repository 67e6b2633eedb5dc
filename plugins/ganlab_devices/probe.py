"""Checks devices, each on request: a program of its own, because a driver may hang or crash whoever asks it.

    python probe.py CHECK...

Prints a line for each check: MARK and JSON with its name, and with what it found or an `error`.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

MARK = "ganlab-devices:"


def devices() -> dict[str, Any]:
    """The devices, Keras' backend, TensorFlow's build, and each GPU's name and compute capability."""
    import keras
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    return {
        "devices": [device.name.removeprefix("/physical_device:") for device in tf.config.list_physical_devices()],
        "backend": keras.backend.backend(),
        "version": tf.__version__,
        "build": dict(tf.sysconfig.get_build_info()),
        "cards": [{"name": str(d.get("device_name", "")), "capability": d.get("compute_capability")} for d in details],
    }


def libraries() -> dict[str, Any]:
    """Versions of driver, CUDA and cuDNN, as the libraries give them, and the free and the whole memory in bytes."""
    import tensorflow as tf

    tf.zeros([]).numpy()  # makes TensorFlow load them
    with tf.device("GPU:0" if tf.config.list_physical_devices("GPU") else "CPU:0"):
        tf.nn.conv2d(tf.zeros([1, 4, 4, 1]), tf.zeros([3, 3, 1, 1]), 1, "SAME").numpy()
    build = tf.sysconfig.get_build_info()
    found: dict[str, Any] = {"driver": _driver()}
    runtime = _library(f"libcudart.so.{str(build.get('cuda_version', '12')).split('.')[0]}")
    if runtime is not None:
        for name, function in (("supports", "cudaDriverGetVersion"), ("cuda", "cudaRuntimeGetVersion")):
            number = ctypes.c_int()
            if getattr(runtime, function)(ctypes.byref(number)) == 0:
                found[name] = number.value
        free, whole = ctypes.c_size_t(), ctypes.c_size_t()
        if runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(whole)) == 0:
            found["memory"] = [free.value, whole.value]
    cudnn = _library(f"libcudnn.so.{str(build.get('cudnn_version', '9')).split('.')[0]}")
    if cudnn is not None:
        cudnn.cudnnGetVersion.restype = ctypes.c_size_t
        found["cudnn"] = cudnn.cudnnGetVersion()
    return found


def product() -> dict[str, Any]:
    """A matrix product in float32 on each GPU, against float64."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    x, y = random.normal(size=(256, 512)), random.normal(size=(512, 384))
    return _against(lambda: tf.matmul(x.astype(np.float32), y.astype(np.float32)), _rounded(x) @ _rounded(y))


def convolution() -> dict[str, Any]:
    """A convolution in float32 on each GPU, against float64."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    x, kernel = random.normal(size=(8, 18, 18, 16)), random.normal(size=(3, 3, 16, 32))
    windows = np.lib.stride_tricks.sliding_window_view(_rounded(x), (3, 3), axis=(1, 2))
    expected = np.einsum("nhwcij,ijco->nhwo", windows, _rounded(kernel), optimize=True)
    return _against(lambda: tf.nn.conv2d(x.astype(np.float32), kernel.astype(np.float32), 1, "VALID"), expected)


def xla() -> dict[str, Any]:
    """A program that XLA compiles, with a loop and a gradient, on each GPU, against float64."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    x, weights = random.normal(size=(64, 128)), random.normal(size=(128, 128)) / 128

    @tf.function(jit_compile=True, autograph=False)
    def program(x: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = tf.reduce_sum(tf.square(tf.nn.relu(x @ weights)))
        slope = tape.gradient(loss, weights)
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y / 2.0), (0, slope))[1]

    score = _rounded(x) @ _rounded(weights)
    expected = _rounded(x).T @ (2 * np.maximum(score, 0)) / 8
    return _against(lambda: program(x.astype(np.float32), weights.astype(np.float32)), expected)


def tensorfloat32() -> dict[str, Any]:
    """Seconds of a product in float32 and in TensorFloat-32, and how far the second is off."""
    import numpy as np
    import tensorflow as tf

    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    side = 4096 if on_gpu else 256
    seconds, results = [], []
    with tf.device("GPU:0" if on_gpu else "CPU:0"):
        x = tf.constant(np.random.default_rng(0).normal(size=(side, side)), tf.float32)
        for switch in (False, True):
            tf.config.experimental.enable_tensor_float_32_execution(switch)
            results.append(tf.matmul(x, x).numpy().astype(np.float64))
            count = max(3, round(0.1 / _timed(x, 3)))
            seconds.append(min(_timed(x, count) for _ in range(3)))
    tf.config.experimental.enable_tensor_float_32_execution(False)
    error = float(np.linalg.norm(results[1] - results[0]) / np.linalg.norm(results[0]))
    return {"seconds": seconds, "operations": 2 * side**3, "error": error}


def determinism() -> dict[str, Any]:
    """Whether a convolution's gradients have the same bits each time, as `experiment.deterministic` has it."""
    import numpy as np
    import tensorflow as tf

    tf.config.experimental.enable_op_determinism()
    random = np.random.default_rng(0)
    images = tf.constant(random.normal(size=(64, 32, 32, 32)), tf.float32)
    kernel = tf.constant(random.normal(size=(3, 3, 32, 64)), tf.float32)

    def gradients() -> bytes:
        with tf.GradientTape() as tape:
            tape.watch([images, kernel])
            loss = tf.reduce_sum(tf.sin(tf.nn.conv2d(images, kernel, 1, "SAME")))
        return b"".join(one.numpy().tobytes() for one in tape.gradient(loss, [images, kernel]))

    times = 5
    return {"times": times, "different": len({gradients() for _ in range(times)})}


# The last one sets a switch that cannot be set back.
CHECKS: dict[str, Callable[[], dict[str, Any]]] = {
    "devices": devices,
    "libraries": libraries,
    "product": product,
    "convolution": convolution,
    "xla": xla,
    "tensorfloat32": tensorfloat32,
    "determinism": determinism,
}


def main() -> None:
    """Runs the checks that are named."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # others may train on the GPU
    for name in sys.argv[1:]:
        answer: dict[str, Any] = {"check": name}
        try:
            answer |= CHECKS[name]()
        except Exception as error:  # of any kind: it is the finding
            told = (str(error).strip() or type(error).__name__).splitlines()
            answer["failed"] = f"{type(error).__name__}: {told[0]}"[:500]
        # One call, so that nothing that a library prints comes between.
        os.write(1, f"\n{MARK}{json.dumps(answer)}\n".encode())
    os._exit(0)  # a driver may hang or crash as the process ends


def _rounded(x: Any) -> Any:
    """Numbers as float32 holds them, in float64."""
    return x.astype("float32").astype("float64")


def _against(compute: Callable[[], Any], expected: Any) -> dict[str, Any]:
    """The largest relative error over all GPUs, and the seconds of the first computation."""
    import numpy as np
    import tensorflow as tf

    tf.config.experimental.enable_tensor_float_32_execution(False)
    errors, seconds = [], []
    for number in range(len(tf.config.list_physical_devices("GPU"))) or ("CPU",):
        begun = time.perf_counter()
        with tf.device("CPU:0" if number == "CPU" else f"GPU:{number}"):
            result = compute().numpy().astype(np.float64)
        seconds.append(time.perf_counter() - begun)
        errors.append(float(np.linalg.norm(result - expected) / np.linalg.norm(expected)))
    # JSON has no NaN, and a comparison with one is never true.
    return {"off": max(errors) if np.isfinite(errors).all() else 1e9, "seconds": seconds[0]}


def _timed(x: Any, count: int) -> float:
    """Seconds of a product, of several that are waited for at the end."""
    import tensorflow as tf

    begun = time.perf_counter()
    for _ in range(count):
        last = tf.matmul(x, x)
    last[0, 0].numpy()
    return (time.perf_counter() - begun) / count


def _library(name: str) -> Any:
    with suppress(OSError):
        return ctypes.CDLL(name)
    return None


def _driver() -> str:
    """The version of NVIDIA's driver, as the kernel gives it; empty where it does not."""
    with suppress(OSError), open("/proc/driver/nvidia/version", encoding="utf-8") as file:
        match = re.search(r"\s(\d{3,}(?:\.\d+)+)\s", file.read())
        return match[1] if match else ""
    return ""


if __name__ == "__main__":
    main()
