"""Runs work in a separate process: devices are fixed when TensorFlow starts, and a crash must not end the command."""

from __future__ import annotations

import contextlib
import contextvars
import gc
import importlib
import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ganlab import python_command, start_process
from ganlab.errors import GanlabError, TrainingFailedError
from ganlab.files import collect_rarely, orderly_end, scratch_folder
from ganlab_verify.report import Row, Source
from ganlab_verify.testing.devices import split_cpu

_WAIT = 0.2  # seconds


# Set when the processes that the threads of a context wait for are to end.
_stop: contextvars.ContextVar[threading.Event] = contextvars.ContextVar("stop")


@contextlib.contextmanager
def ending_together() -> Iterator[None]:
    """Context manager: an exception inside, or a signal that asks to stop, ends the processes of the context's threads.

    A thread belongs to it if its work runs in a copy of the context.
    """
    stop = threading.Event()
    token = _stop.set(stop)
    try:
        with orderly_end():
            yield
    except BaseException:
        stop.set()
        raise
    finally:
        _stop.reset(token)


def run_process(
    command: Sequence[str], *, input: str | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Like `ganlab.files.run_process`, and the process ends with `ending_together`."""
    stop = _stop.get(None)
    options.setdefault("stdin", subprocess.DEVNULL if input is None else subprocess.PIPE)
    with start_process(command, stdout=subprocess.PIPE, **options) as process:
        try:
            while True:
                try:
                    output, errors = process.communicate(input, timeout=_WAIT)
                    return subprocess.CompletedProcess(command, process.returncode, output, errors)
                except subprocess.TimeoutExpired:
                    input = None  # what is left of it is written by the next call
                if stop is not None and stop.is_set():
                    process.kill()
        except BaseException:
            process.kill()
            raise


class ProcessError(Exception):
    """The work failed; the message is one readable line, `trace` a traceback or the last output of the process."""

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message)
        self.trace = trace


def call(target: str, source: Source, options: Mapping[str, Any], *, cpus: int) -> Any:
    """Calls a function in a fresh process.

    Args:
        target: `module:function`; called with the source and the options as keywords.
        source: The experiment.
        options: Values that JSON can represent.
        cpus: The number of logical devices that the process splits its CPU into; 0 leaves that to the function. It
            sees no other device.

    Returns:
        The function's result: a `Row`, or values that JSON can represent.

    Raises:
        ProcessError: It raised, or the process died.
    """
    spec = json.dumps({"target": target, "source": asdict(source), "options": options, "cpus": cpus})
    with scratch_folder("ganlab-verify-") as folder:
        result = Path(folder) / "result.json"
        command = python_command("-m", __name__, str(result))
        done = run_process(command, input=spec, env=_environment(), stderr=subprocess.STDOUT, text=True)
        if not result.is_file():
            last = done.stdout.strip()
            raise ProcessError(f"The check's process died (exit status {done.returncode}).", last[-4000:])
        answer = json.loads(result.read_text(encoding="utf-8"))
    if "error" in answer:
        raise ProcessError(answer["error"], answer["trace"])
    return Row(**answer["row"]) if "row" in answer else answer["value"]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "TPU_NAME")}
    return {"TF_CPP_MIN_LOG_LEVEL": "3", "GRPC_VERBOSITY": "ERROR", **kept, "CUDA_VISIBLE_DEVICES": "-1"}


def _main(result: Path) -> None:
    from ganlab.engine import sentence

    spec = json.load(sys.stdin)
    collect_rarely()
    try:
        if spec["cpus"]:
            split_cpu(spec["cpus"])
        module, _, function = spec["target"].partition(":")
        made = getattr(importlib.import_module(module), function)(_source(spec["source"]), **spec["options"])
        answer: dict[str, Any] = {"row": asdict(made)} if isinstance(made, Row) else {"value": made}
    except Exception as error:
        expected = isinstance(error, (GanlabError, TrainingFailedError))
        message = str(error) if expected else sentence(error)
        answer = {"error": message, "trace": "".join(traceback.format_exception(error))}
    part = result.with_suffix(".part")
    part.write_text(json.dumps(answer), encoding="utf-8")
    part.replace(result)


def _source(fields: Mapping[str, Any]) -> Source:
    made: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in fields.items()}
    return Source(**made)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
    gc.freeze()  # the process then ends a second earlier
