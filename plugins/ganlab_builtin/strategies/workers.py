"""Several machines in step."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf

_EXAMPLE = (
    '{"cluster": {"worker": ["host-a:12345", "host-b:12345"]}, "task": {"type": "worker", "index": 0}}, '
    "with each process's own index"
)
# A name, an IPv4 address, or an IPv6 address in brackets, and a port.
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]/]+):[0-9]{1,5}")
_COMMUNICATIONS = ("auto", "ring", "nccl")


def multi_worker(
    *, communication: Literal["auto", "ring", "nccl"] = "auto", bucket_bytes: Annotated[int, Ge(0)] = 0
) -> tf.distribute.Strategy:
    """A process on each of several machines, all of whose devices train in step.

    Start the same command in every process, each with its own `TF_CONFIG`. This waits for all of them.

    Args:
        communication: How gradients are summed: "nccl" between NVIDIA GPUs, "ring" over gRPC, or TensorFlow's choice.
        bucket_bytes: Gradients are summed in buckets of at least this many bytes, the last layers' first, each while
            the backward pass computes the gradients of earlier layers, as in Li et al., "PyTorch distributed" (2020),
            section 3.2.3. 0 sums all in one message at the end.
    """
    if communication not in _COMMUNICATIONS:
        raise ganlab.ConfigError(
            f"strategies.multi_worker.communication = {communication!r} must be one of "
            f"{', '.join(map(repr, _COMMUNICATIONS))}."
        )
    addresses = check_cluster(os.environ.get("TF_CONFIG", ""))
    implementation = getattr(tf.distribute.experimental.CommunicationImplementation, communication.upper())
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=implementation, bytes_per_pack=bucket_bytes
    )
    _say_who_is_waited_for(addresses)
    try:
        with _own_signals():
            return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    except RuntimeError as error:
        if "program startup" not in str(error):
            raise
        raise ganlab.IncompatibleError(
            "strategies.multi_worker must be made before anything else uses TensorFlow, and this process has used it. "
            "Make it first, in a fresh process."
        ) from error
    except tf.errors.OpError as error:
        raise ganlab.IncompatibleError(
            f"strategies.multi_worker could not join its cluster: {str(error).splitlines()[0]}. Check that every "
            "process of TF_CONFIG is started, reaches the others, and that no other program has its port."
        ) from error


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Context manager: Ctrl-C ends the process at once. Python's handler would wait until TensorFlow has returned.

    SIGTERM cannot be treated alike: TensorFlow takes it over as it begins to wait, and would keep it. Afterwards it is
    as before, so that it ends a process that traces, too.
    """
    handler = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    changed = main and handler not in (None, signal.SIG_IGN)
    if changed:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if changed:
            signal.signal(signal.SIGINT, handler)
        if main and (before := signal.getsignal(signal.SIGTERM)) is not None:
            signal.signal(signal.SIGTERM, before)  # what Python knows of, and so not TensorFlow's


def _say_who_is_waited_for(addresses: list[str]) -> None:
    if len(addresses) > 1:
        everyone = f"all of {len(addresses)} workers: {', '.join(addresses)}"
        print(f"strategies.multi_worker: waiting for {everyone}.", file=sys.stderr, flush=True)


def check_cluster(text: str) -> list[str]:
    """The workers' addresses in the value of `TF_CONFIG`, which must be right about them and this process."""
    if not text.strip():
        raise _unusable("is not set")
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise _unusable(f"is not JSON (line {error.lineno}, column {error.colno}: {error.msg})") from None
    except (ValueError, RecursionError):
        raise _unusable(
            "is not JSON that can be read: it has a number of many digits, or is nested too deeply"
        ) from None
    cluster, task = _part(config, "cluster"), _part(config, "task")
    addresses = {name: cluster[name] for name in ("chief", "worker") if name in cluster}
    for name, hosts in addresses.items():
        if not isinstance(hosts, list) or not hosts or not all(isinstance(host, str) for host in hosts):
            raise _unusable(f"has cluster.{name} = {hosts!r}, which must be a list of 'host:port'")
        for host in hosts:
            if not _ADDRESS.fullmatch(host) or not 0 < int(host.rpartition(":")[2]) < 2**16:
                raise _unusable(f"has {host!r} in cluster.{name}, which must be 'host:port' with a port below 65536")
    if not addresses:
        raise _unusable("has no cluster.worker")
    every = [host for hosts in addresses.values() for host in hosts]
    if len(set(every)) < len(every):
        raise _unusable(f"has {max(every, key=every.count)!r} more than once; each worker has an address of its own")
    kind, index = task.get("type"), task.get("index")
    if not isinstance(kind, str) or kind not in addresses:
        raise _unusable(f"has task.type = {kind!r}, which must be one of {', '.join(map(repr, addresses))}")
    count = len(addresses[kind])
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
        raise _unusable(
            f"has task.index = {index!r}, which must be from 0 to {count - 1}, as there are {count} {kind}s"
        )
    return every


def _part(config: Any, name: str) -> dict[str, Any]:
    part = config.get(name) if isinstance(config, dict) else None
    if not isinstance(part, dict):
        raise _unusable(f"has no object {name!r}")
    return part


def _unusable(why: str) -> ganlab.ConfigError:
    return ganlab.ConfigError(
        f"strategies.multi_worker reads the environment variable TF_CONFIG, which {why}. Set it to {_EXAMPLE}; or use "
        "strategies.mirrored on one machine."
    )
