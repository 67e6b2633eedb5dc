"""Evaluation in a process of its own: the trainer's side asks, the other side, `serve`, evaluates checkpoints.

They talk through a socket, which is the process's standard input. The trainer sends the run's description first, then a
step and a checkpoint at a time. The process sends the plugin's code that it begins to run, None when that has ended,
each evaluation, and an error as text. It exits when the trainer closes the socket or ends.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe  # noqa: TID251  # starts nothing
from pathlib import Path
from typing import Any

import tensorflow as tf

from ganlab.composition import compose
from ganlab.errors import GanlabError
from ganlab.plugins import manager as plugins
from ganlab.plugins import plugin_errors
from ganlab.runs import RunDirectory
from ganlab.runs.experiment_source import use_plugins
from ganlab.support.processes import python_command, start_process
from ganlab.training.checkpoints import Checkpoint, restore
from ganlab.training.evaluation import Evaluated, Evaluation
from ganlab.training.graph.state import TrainingState
from ganlab.training.time_limits import limit
from ganlab.training.watchdog import LIMIT

# How long waiting may last before a signal's handler runs, and before the process is killed at the end.
_LOOK_SECONDS, _END_SECONDS = 0.2, 5.0
# Of what the process wrote to standard error, the bytes at the end that an error shows.
_TAIL = 400
# Its priority is lower than the trainer's, while it imports TensorFlow too.
_CODE = "import os; os.nice(10); from ganlab.training.beside import serve; serve()"


class Beside:
    """A process that evaluates checkpoints of a run, one after another.

    It sees no accelerator, which belongs to the training, and yields the processor to it.

    Attributes:
        asked: The step whose evaluation has not been taken yet, or None.
    """

    def __init__(self, run: RunDirectory) -> None:
        """Starts the process, which makes the experiment while training begins."""
        rows = plugins.current().rows
        local = [row.distribution for row in rows if row.name == plugins.LOCAL_MODULE and row.status != "disabled"]
        denied = [row.name for row in rows if row.status == "disabled" and row.name != plugins.LOCAL_MODULE]
        self.asked: int | None = None
        self._running: plugin_errors.Running | None = None
        self._limit = limit(LIMIT)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        self._connection, theirs = Pipe()
        with theirs:
            self._child = start_process(
                python_command("-c", _CODE),
                stdin=theirs.fileno(),
                stdout=self._said,  # what components print
                stderr=self._said,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # Ctrl-C goes to the trainer alone
            )
        self._send((type(run), run.path.resolve(), denied, local[0] if local else None))

    def ask(self, step: int, checkpoint: Path) -> None:
        """Asks for the evaluation of a checkpoint."""
        self.asked = step
        self._send((step, checkpoint.resolve()))

    def answer(self, *, wait: bool = False) -> tuple[Evaluated, dict[str, str | None]] | None:
        """The evaluation that was asked for, and the evaluators' reports; None if it is not ready or not asked for.

        A process that failed or hangs is a `GanlabError`.
        """
        wait = wait and self.asked is not None
        while True:
            try:
                if not self._connection.poll(_LOOK_SECONDS if wait else 0.0):
                    self._check_time()
                    if wait:
                        continue
                    return None
                message = self._connection.recv()
            except (EOFError, OSError):
                where = f" in {self._running.part}, {self._running.method}," if self._running else ""
                raise GanlabError(f"The process that evaluates beside training ended{where}{self._how()}.") from None
            if isinstance(message, str):
                raise GanlabError(message)
            if isinstance(message, tuple):
                self.asked = None
                return message
            self._running = message

    def close(self) -> None:
        """Ends the process, whatever it does."""
        self._connection.close()  # upon which it exits
        try:
            self._child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._said.close()

    def _send(self, request: tuple[Any, ...]) -> None:
        with contextlib.suppress(OSError):  # it has ended, which the missing answer shows
            self._connection.send(request)

    def _check_time(self) -> None:
        if (code := self._running) and (seconds := time.monotonic() - code.since) >= self._limit:
            raise GanlabError(
                f"{code.part} has not answered for {seconds:.0f} s in {code.method}, beside training; the limit is "
                f"{LIMIT}={self._limit:g}. Raise the limit, or leave the plugin out"
            )

    def _how(self) -> str:
        code = self._child.wait()
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - _TAIL))
        said = self._said.read().decode(errors="replace").strip().rpartition("\n")[2]
        return f" with exit status {code}{f': {said}' if said else ''}"


def serve() -> None:
    """Evaluates checkpoints until the trainer closes standard input."""
    connection = Connection(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # components do not read the trainer's requests
    requests: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, requests), daemon=True).start()

    def tell(code: plugin_errors.Running | None) -> None:
        if threading.current_thread() is threading.main_thread():  # which answers too: messages do not mix
            connection.send(code)

    plugin_errors.listen(tell)
    try:
        evaluate = _evaluator(*requests.get())
        while True:
            connection.send(evaluate(*requests.get()))
    except GanlabError as error:
        connection.send(str(error))
    except Exception as error:
        connection.send(f"The evaluation beside training failed: {type(error).__name__}: {error}")


def _read(connection: Connection, requests: queue.SimpleQueue[tuple[Any, ...]]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            requests.put(connection.recv())
    os._exit(0)  # whatever it evaluates, nobody waits for


def _evaluator(
    as_run: type[RunDirectory], path: Path, denied: list[str], plugin_file: str | None
) -> Callable[[int, Path], tuple[Evaluated, dict[str, str | None]]]:
    """Returns a function that evaluates a step, given its checkpoint; what it has built is used for every step."""
    use_plugins(denied, Path(plugin_file) if plugin_file else None)
    run = as_run(path)
    recipe = run.recipe()
    # One device, whatever the run trains on.
    arguments = {**recipe.arguments, "strategy": tf.distribute.get_strategy(), "microbatches": 1}
    experiment = compose(replace(recipe, arguments=arguments))
    state = TrainingState(experiment)
    evaluation = Evaluation(experiment, state)

    def evaluated(step: int, checkpoint: Path) -> tuple[Evaluated, dict[str, str | None]]:
        restore(Checkpoint(checkpoint, step), state.variables())
        state.step = step
        return evaluation(step, run), evaluation.state()

    return evaluated
