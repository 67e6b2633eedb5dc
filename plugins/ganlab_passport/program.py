"""Runs the program under check, which may be anybody's, and reads its answer. Does not import TensorFlow."""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import signal
import tempfile
import time
from pathlib import Path

from ganlab import start_process
from ganlab.errors import RunError
from ganlab.files import line, scratch_folder
from ganlab_passport import tensors

_POLL, _TAIL = 0.05, 2000
_MEMORY = 64 << 30  # bytes of addresses, of which PyTorch and JAX reserve many more than they use


def answers(command: str, inputs: bytes, ending: str, *, seconds: float) -> tensors.Arrays:
    """Starts a program on the inputs of a passport, as its standard input and as a file, and returns its answer.

    Args:
        command: The command line; `{}` in it is replaced by the file's path.
        inputs: The content of the file.
        ending: The ending of its name.
        seconds: How long the program may take.

    Raises:
        RunError: It cannot be started, fails, takes too long or prints too much, or its answer holds no arrays.
    """
    with contextlib.ExitStack() as stack:
        path = Path(stack.enter_context(scratch_folder("ganlab-passport-"))) / f"inputs{ending}"
        path.write_bytes(inputs)
        given = stack.enter_context(path.open("rb"))
        output, errors = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        try:
            words = [word.replace("{}", str(path)) for word in shlex.split(command)]
        except ValueError as error:
            raise RunError(f"--command {line(command)!r} cannot be split into words: {error}.") from None
        # The user's own command may import what lies beside it, which ganlab's processes may not.
        words, until = ["env", "-u", "PYTHONSAFEPATH", *words], time.monotonic() + seconds
        process = start_process(words, stdin=given, stdout=output, stderr=errors, start_new_session=True)
        reason = ""
        try:
            if hasattr(resource, "prlimit"):
                with contextlib.suppress(ProcessLookupError):
                    resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            while process.poll() is None and not reason:
                time.sleep(_POLL)
                if time.monotonic() > until:
                    reason = f"has not ended after {seconds:g} s, and was ended (--seconds)"
                elif max(os.fstat(file.fileno()).st_size for file in (output, errors)) > tensors.MOST:
                    reason = f"printed more than {tensors.MOST >> 20} MiB, and was ended"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if reason or process.returncode:
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _TAIL))
            last = errors.read(_TAIL).decode(errors="replace").strip().rpartition("\n")[2]
            reason = reason or f"ended with exit status {process.returncode}"
            raise RunError(f"The program of --command {reason}{': ' * bool(last)}{line(last)}.")
        output.seek(0)
        return tensors.decode(output.read(tensors.MOST + 1), "What the program printed")[0]
