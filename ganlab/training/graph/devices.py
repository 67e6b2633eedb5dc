"""The devices that an experiment trains on."""

from __future__ import annotations

import tensorflow as tf

from ganlab.composition import Experiment


def on_gpu(experiment: Experiment) -> bool:
    """Whether the experiment trains on GPUs, whatever else the machine has."""
    # A machine with GPUs may run this experiment on its CPU.
    devices = experiment.strategy.extended.worker_devices
    return any(tf.DeviceSpec.from_string(device).device_type == "GPU" for device in devices)
