"""Programs that XLA compiles whole, on a CPU: operations outside them, copies that a GPU would make, processor time."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import cases
from benchmarks.pairs import Figure, Ratio, in_turn
from ganlab.lazy import tensorflow as tf

# Their graphs are as large at any width, and smaller networks compile sooner.
_SMALL = {"mlp": {"width": 32}, "dcgan": {"channels": 8}}
_MOST = 40
# An event of an operation: its name and its type.
_OPERATION = re.compile(r"[^:#]+:(?P<type>[A-Z]\w*)$")


def launches(rounds: int) -> list[Ratio | Figure]:
    """Operations of an iteration outside XLA, from a trace; and copies between host and device, from the graph."""
    from benchmarks.skeleton import body_of
    from ganlab.training.graph.trainer import Trainer

    del rounds  # every iteration runs the same
    rows: list[Ratio | Figure] = []
    for kind, small in _SMALL.items():
        for jit in ("off", "on", "step"):
            trainer = Trainer(cases.CASES[kind](jit=jit, **small))
            most = _MOST if jit == "step" else None
            rows.append(Figure(f"{kind.upper()}, jit = {jit!r}: operations", launched(trainer.train), "", most))
        to_device, to_host = copies(body_of(trainer.graph()))
        rows.append(Figure(f"{kind.upper()}, jit = 'step': copies to the device", to_device, ""))
        rows.append(Figure(f"{kind.upper()}, jit = 'step': copies to the host, for which it waits", to_host, "", 0))
    return rows


def programs(rounds: int) -> list[Ratio | Figure]:
    """An iteration compiled whole against TensorFlow's kernels, in processor time: the shipped small networks."""
    from ganlab.composition import compose
    from ganlab.config import load
    from ganlab.training.graph.trainer import Trainer

    rows: list[Ratio | Figure] = []
    alone = "experiment.strategy=@strategies.one_device()"
    for name in ("eight_gaussians", "swiss_roll", "quickstart"):
        made = (compose(load([name], [alone, f"experiment.jit='{jit}'"])) for jit in ("step", "off"))
        program, kernels = (Trainer(experiment).train for experiment in made)
        program(2)
        kernels(2)
        chunk = max(1, round(1 / busy(kernels, 1)))
        pairs = in_turn(partial(busy, program, chunk), partial(busy, kernels, chunk), rounds)
        rows.append(Ratio(f"{name}: jit = 'step' / 'off'", pairs))
    return rows


def busy(train: Callable[[int], object], count: int) -> float:
    """The seconds that all threads work while so many iterations train: other programs disturb them less than time."""
    begun = time.process_time()
    train(count)
    return time.process_time() - begun


def launched(train: Callable[[int], object]) -> float:
    """The operations that the executor runs in an iteration, without the launches of XLA's programs."""
    train(3)  # traces and compiles
    # Whole blocks, where a program has many iterations.
    few, many = operations(lambda: train(32)), operations(lambda: train(64))
    return sum((many - few).values()) / 32


def operations(run: Callable[[], object]) -> Counter[str]:
    """The operations that the executor runs, by type, from a trace of TensorFlow's profiler."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
    space = xplane_pb2.XSpace()
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder, options):
            run()
        (file,) = Path(folder).rglob("*.xplane.pb")
        space.ParseFromString(file.read_bytes())
    return Counter(name for plane in space.planes for name in _types(plane))


def _types(plane: Any) -> Iterator[str]:
    for line in plane.lines:
        for event in line.events:
            match = _OPERATION.match(plane.event_metadata[event.metadata_id].name.partition("#")[0])
            if match:
                yield match["type"]


def copies(graph: tf.Graph) -> tuple[int, int]:
    """How many tensors of a loop's body a GPU would copy, to the device and to the host, by its kernels.

    The host waits for copies to it alone. A program of XLA's takes and makes tensors of the device. Of a loop's
    variables those lie on the host that are int32 or text.
    """
    made = {
        tensor.name: _on_host(op, tensor.dtype, i, False)
        for op in graph.get_operations()
        for i, tensor in enumerate(op.outputs)
    }
    to_device, to_host = set(), set()
    for op in graph.get_operations():
        for i, tensor in enumerate(op.inputs):
            if tensor.dtype not in (tf.resource, tf.variant) and tensor.op.type != "Const":
                wanted = _on_host(op, tensor.dtype, i, True)
                if wanted != made[tensor.name]:
                    (to_host if wanted else to_device).add(tensor.name)
    return len(to_device), len(to_host)


def _on_host(op: tf.Operation, dtype: tf.DType, number: int, is_input: bool) -> bool:
    """Whether a GPU has an operation's input or output on the host."""
    if "CPU" in op.device:
        return True
    if op.type in ("Placeholder", "Identity", "While", "PartitionedCall", "StatefulPartitionedCall"):
        return dtype in (tf.int32, tf.string)
    from tensorflow.python.framework import kernels

    known = kernels.get_registered_kernels_for_op(op.type).kernel
    kernel = next((one for one in known if one.device_type in ("GPU", "DEFAULT") and _fits(op, one)), None)
    if kernel is None:
        return True
    return _argument(op, number, is_input) in kernel.host_memory_arg


def _fits(op: tf.Operation, kernel: Any) -> bool:
    return all(op.get_attr(one.name).as_datatype_enum in one.allowed_values.list.type for one in kernel.constraint)


def _argument(op: tf.Operation, number: int, is_input: bool) -> str:
    """The name of an operation's argument that has its input or output of this number."""
    declared = op.op_def.input_arg if is_input else op.op_def.output_arg
    for one in declared:
        number -= int(op.get_attr(one.number_attr)) if one.number_attr else 1
        if number < 0:
            return one.name
    return ""
