"""Four logical CPUs for conformance tests. TensorFlow can split the CPU only before its first use."""

from __future__ import annotations

import gc
import os

from ganlab.errors import IncompatibleError

CPUS = 4


def split_cpu(count: int = CPUS) -> None:
    """Splits the CPU, unless that is already done or too late; `cpus` raises an error if it was too late."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    # Keras collects garbage whenever names are reset, here for each network, and need not visit TensorFlow's objects.
    gc.collect()
    gc.freeze()
    cpu = tf.config.list_physical_devices("CPU")[0]
    if len(tf.config.get_logical_device_configuration(cpu) or []) >= count:
        return
    try:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    except RuntimeError:
        return  # TensorFlow has started: an error for the tests that need the CPUs, not for those that do not


def cpus() -> list[str]:
    """The names of the logical CPUs, `["CPU:0", ...]`.

    Raises:
        IncompatibleError: There are fewer than four.
    """
    import tensorflow as tf

    names = [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices("CPU")]
    if len(names) < CPUS:
        raise IncompatibleError(
            f"Conformance tests train on {CPUS} logical CPUs, but TensorFlow has started with {len(names)}: it was "
            "used while tests were collected, or ganlab's pytest plugin is switched off. Move code that uses "
            "TensorFlow at import (a module's top level, a decorator's arguments) into a test, a fixture or a method, "
            "and run pytest without -p no:ganlab."
        )
    return names[:CPUS]
