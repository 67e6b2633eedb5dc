"""The devices of one machine."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import warnings
from typing import Annotated

import ganlab
from ganlab.bounds import Ge, Le
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.strategies.workers import check_cluster

# Each is a device with its own threads: thousands would take minutes and all memory before they could be refused.
_MOST_VIRTUAL = 256

_DEVICE = re.compile(r"/?(?:device:)?(CPU|GPU):(\d+)", re.IGNORECASE)


def one_device(*, device: str | None = None) -> tf.distribute.Strategy:
    """Everything on one device: one replica.

    Args:
        device: The device, for example "GPU:1" or "CPU:0"; None for the first GPU, or the CPU if there is none.
    """
    _warn_of_other_workers("one_device")
    chosen = _device("one_device.device", device) if device is not None else _first(_logical("GPU") or _logical("CPU"))
    return tf.distribute.OneDeviceStrategy(f"/{chosen}")


def mirrored(
    *, devices: list[str] | None = None, virtual_replicas: Annotated[int, Ge(1), Le(_MOST_VIRTUAL)] | None = None
) -> tf.distribute.Strategy:
    """A replica on each of several devices of this machine, in step.

    Args:
        devices: The devices, for example ["GPU:0", "GPU:1"], all of one type; None for all GPUs, or else one CPU.
        virtual_replicas: Splits the CPU into this many devices, a replica on each, to see on a laptop what several
            replicas do. It is not faster than one. TensorFlow splits a CPU before its first use and only once.
    """
    if devices is not None and virtual_replicas is not None:
        raise ganlab.ConfigError(
            f"strategies.mirrored has devices = {devices!r} and virtual_replicas = {virtual_replicas!r}: the second "
            "makes its own devices. Give one of them."
        )
    _warn_of_other_workers("mirrored")
    if virtual_replicas is not None:
        chosen = _split_cpu(virtual_replicas)
    elif devices is not None:
        chosen = _distinct(devices)
    else:
        chosen = _logical("GPU") or [_first(_logical("CPU"))]
    # A group of collectives has one size for the life of a process: two strategies of different sizes could not follow
    # one another. Summing on one device has no groups, and is not slower on CPUs. GPUs keep TensorFlow's choice, NCCL;
    # on a single one there is nothing to sum, and XLA could not compile it: there TensorFlow says at every sum of a
    # compiled iteration that it takes collectives instead, which are empty.
    alone = len(chosen) == 1 or chosen[0].startswith("CPU")
    summing = tf.distribute.ReductionToOneDevice() if alone else None
    if len(chosen) == 1:
        tf.get_logger().addFilter(_not_of_sums)
    return tf.distribute.MirroredStrategy([f"/{device}" for device in chosen], cross_device_ops=summing)


def _warn_of_other_workers(selector: str) -> None:
    """Warns where TF_CONFIG, which only `strategies.multi_worker` reads, names several workers."""
    try:
        workers = check_cluster(os.environ.get("TF_CONFIG", ""))
    except ganlab.ConfigError:
        return
    if len(workers) > 1:
        warnings.warn(
            f"TF_CONFIG names {len(workers)} workers, and strategies.{selector} trains on this machine alone: each "
            "process trains a run of its own. For one run on all of them, choose strategies.multi_worker.",
            stacklevel=3,
        )


def _not_of_sums(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Under XLA context, MirroredStrategy uses CollectiveAllReduce")


def _split_cpu(count: int) -> list[str]:
    """Names of `count` logical CPUs, made if TensorFlow has not started yet."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    # The CPU may already be split into more, which other code may rely on: the first few serve as well.
    if len(tf.config.get_logical_device_configuration(cpu) or []) < count:
        # A RuntimeError means that TensorFlow has started: the existing devices decide, below.
        with contextlib.suppress(RuntimeError):
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    present = _logical("CPU")
    if len(present) < count:
        raise ganlab.IncompatibleError(
            f"strategies.mirrored.virtual_replicas = {count} needs {count} logical CPUs, and TensorFlow has started "
            f"with {len(present)} in this process. Make the strategy before anything else uses TensorFlow: in a fresh "
            "process (restart the notebook's kernel), or split the CPU into the largest count first. Or choose "
            "strategies.one_device."
        )
    return present[:count]


def _distinct(devices: list[str]) -> list[str]:
    if not devices:
        raise ganlab.ConfigError(
            "strategies.mirrored.devices = [] names no device. Name some, for example ['GPU:0', 'GPU:1'], or leave "
            "it out for all GPUs."
        )
    chosen = [_device("mirrored.devices", device) for device in devices]
    if len(set(chosen)) < len(chosen):
        raise ganlab.ConfigError(f"strategies.mirrored.devices = {devices!r} names a device twice. Name each once.")
    if len({device.split(":")[0] for device in chosen}) > 1:
        raise ganlab.ConfigError(
            f"strategies.mirrored.devices = {devices!r} mixes CPUs and GPUs: replicas in step need devices of one type."
        )
    return chosen


def _device(selector: str, name: str) -> str:
    """The plain name ("GPU:0") of a device of this machine."""
    match = _DEVICE.fullmatch(name)
    if not match:
        raise ganlab.ConfigError(
            f"strategies.{selector}: {name!r} is not the name of a device. Write 'CPU:0', 'GPU:0', 'GPU:1' and so on."
        )
    plain = f"{match[1].upper()}:{int(match[2])}"
    present = _logical("CPU") + _logical("GPU")
    if plain not in present:
        raise ganlab.IncompatibleError(
            f"strategies.{selector}: this machine has no {plain}; TensorFlow sees {', '.join(present)}. Name one of "
            "them, or leave the parameter out."
        )
    return plain


def _logical(kind: str) -> list[str]:
    return [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices(kind)]


def _first(devices: list[str]) -> str:
    return devices[0]
