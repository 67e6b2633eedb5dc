"""The check `tpu`: is the training step, as it stands, a program that a TPU slice can hold?"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ganlab.errors import ConfigError
from ganlab.files import scratch_folder
from ganlab_verify.process import ProcessError, call, run_process
from ganlab_verify.report import Row, Source, Status
from ganlab_verify.tpu import chips, environment
from ganlab_verify.tpu.chips import Topology

COMPILING = Path(__file__).with_name("compiling.py")  # run by its path, in an environment without ganlab

_OP_NAME = re.compile(r'op_name="([^"]+)"')
_NEEDED = re.compile(r"\(([\d.]+)([KMGT])\) exceeds available|[Uu]sed ([\d.]+)([KMGT]) of")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_LONGEST_MESSAGE = 500


def check(source: Source, *, topology: str = "v5e:2x2", install: bool = True, optimize: bool = True) -> Row:
    """Compiles the experiment's training iteration for every core of a TPU slice, which need not exist.

    The function compiled is `TrainingStep.iteration`: all updates of the critic and the generator's, with their
    optimizers and all-reduces, for a global batch of the experiment's size, rounded up if it does not divide over the
    cores.

    Args:
        source: The experiment.
        topology: The slice, for example `v5e:2x2` or `v4:2x2x1`.
        install: Whether to install the compiler, 600 MB, if it is missing.
        optimize: Whether the compiler optimizes as for a run. If not, it is done much sooner; operations and
            all-reduces are the same, bytes and memory differ.

    Returns:
        A row whose figure is the memory that a core needs, divided by the memory it has. It passes if the step
        compiles, fits, and reduces over its cores where there are several. It is refused if steps differ, skipped if
        the compiler is not installed, and not run if the compiler cannot be installed.

    Raises:
        ConfigError: The topology is unknown.
    """
    wanted = chips.topology(topology)
    data: dict[str, Any] = {"topology": topology, "cores": wanted.cores, "compiler": list(environment.PINS)}
    if not install and not environment.installed():
        missing = f"the TPU compiler ({', '.join(environment.PINS)}; {environment.SIZE}) is not installed"
        again = f"ganlab verify --gin {shlex.quote(source.gin_files[0])} --checks tpu --install"
        return Row("tpu", "skipped", None, 1.0, f"Skipped: {missing}. To install it, once, and check: {again}", data)
    try:
        python, variables = environment.compiler_python()
    except environment.UnavailableError as error:
        return _not_run(f"the TPU compiler ({', '.join(environment.PINS)}) cannot be installed here: {error}", data)
    with scratch_folder("ganlab-tpu-") as name:
        module = Path(name) / "step.stablehlo"
        try:
            options = {"replicas": wanted.cores, "module": str(module)}
            lowered = call("ganlab_verify.tpu.lowering:lower", source, options, cpus=1)
        except ProcessError as error:
            return Row("tpu", "failed", None, 1.0, str(error), {**data, "traceback": error.trace})
        data["batch_size"] = lowered["batch_size"]
        if lowered["refused"]:
            return Row("tpu", "refused", None, 1.0, lowered["refused"], data)
        if lowered["obstacles"]:
            return _stopped(lowered["obstacles"], data)
        request = {**_described(wanted), "module": str(module), "optimize": optimize}
        compiled = _ask(python, variables, request, module.with_suffix(".json"))
    if "died" in compiled:
        return _not_run(f"the process that compiles for the TPU died: {compiled['died']}", data)
    outcome, message = compiled.pop("outcome"), compiled.pop("message", "")
    if outcome == "no topology":
        raise _unknown(topology, message)
    data |= compiled
    if outcome == "refused":
        return _refused(message, lowered["lines"], wanted, data)
    return _judged(wanted, lowered["asked_batch_size"], data)


def check_topologies(names: Sequence[str]) -> None:
    """Asks the compiler, which must be installed, whether it knows the topologies; this takes some seconds.

    Args:
        names: Slices, for example `v5e:2x2`.

    Raises:
        ConfigError: One of them is unknown.
        UnavailableError: The compiler is not installed and cannot be.
    """
    python, variables = environment.compiler_python()
    asked = [_described(chips.topology(name)) for name in names]
    with scratch_folder("ganlab-tpu-") as folder:
        answer = _ask(python, variables, {"topologies": asked}, Path(folder) / "known.json")
    if isinstance(answer, list):  # a compiler that dies here says why when it compiles
        for name, message in zip(names, answer, strict=True):
            if message:
                raise _unknown(name, message)


def _unknown(topology: str, message: str) -> ConfigError:
    return ConfigError(f"Unknown topology {topology!r}: {message}. Name another slice.")


def _described(wanted: Topology) -> dict[str, Any]:
    return {"topology": wanted.name, "configuration": wanted.chip.configuration, "cores": wanted.cores}


def _ask(python: str, variables: dict[str, str], request: dict[str, Any], result: Path) -> Any:
    """Runs the compiler's process; returns its answer, or `died` with the last line of its standard error."""
    command, text = [python, "-P", str(COMPILING)], json.dumps({**request, "result": str(result)})
    done = run_process(
        command, cwd=os.sep, env=variables, input=text, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    if done.returncode == 0:
        return json.loads(result.read_text(encoding="utf-8"))
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return {"died": f"{lines[-1]} ({ended})" if lines else ended}


def _judged(wanted: Topology, asked: int, data: dict[str, Any]) -> Row:
    """The row of a step that compiles."""
    written, combined, memory = data["all_reduces"], data["compiled_all_reduces"], data["memory"]
    memory["capacity"] = capacity = wanted.chip.memory
    cores, batch = wanted.cores, data["batch_size"]
    figure = memory["total"] / capacity
    status: Status = "passed"
    sentences = [
        f"Compiles for {wanted.name} ({data['device']}, {cores} {'core' if cores == 1 else 'cores'}, {batch // cores} "
        f"of {batch} examples on each): {written['count']} all-reduces of {_bytes(written['bytes'])} in all, combined "
        f"to {combined['count']}; {_bytes(memory['total'])} of the {_bytes(capacity)} of a core; "
        f"{_flop(data['flops'])} an iteration and core."
    ]
    if batch != asked:
        sentences.append(f"experiment.batch_size = {asked} does not divide over {cores} cores: {batch} was compiled.")
    products = data["float32_products"]
    if products["in_bfloat16"]:
        sentences.append(
            f"{products['in_bfloat16']} of {products['count']} float32 products round their factors to bfloat16."
        )
    if cores > 1 and not combined["count"]:
        status = "failed"
        sentences.insert(0, "The program has no all-reduce: replicas would train apart.")
    if figure > 1:
        status = "failed"
        sentences.insert(0, "It does not fit. Take a smaller batch or more cores.")
    return Row("tpu", status, figure, 1.0, " ".join(sentences), data)


def _stopped(obstacles: list[dict[str, Any]], data: dict[str, Any]) -> Row:
    """The row of a step that TensorFlow or XLA rejected."""
    data["obstacles"] = obstacles
    sentences = ["The step cannot be compiled for a TPU."]
    for obstacle in obstacles:
        what = f"{obstacle['op']}: {obstacle['reason']}" if obstacle["op"] else obstacle["reason"]
        sentences.append(f"{what.rstrip('.')}{_at(obstacle['line'])}.")
    if any(obstacle["op"] for obstacle in obstacles):
        sentences.append("Use other operations there.")
    return Row("tpu", "failed", None, 1.0, " ".join(sentences), data)


def _refused(message: str, lines: dict[str, Any], wanted: Topology, data: dict[str, Any]) -> Row:
    """The row of a step that the TPU's own compiler rejected."""
    data["message"] = message
    needed = _NEEDED.search(message)
    if "RESOURCE_EXHAUSTED" in message and needed:
        number, unit = [group for group in needed.groups() if group]
        total, capacity = float(number) * _UNITS[unit], wanted.chip.memory
        data["memory"] = {"total": int(total), "capacity": capacity}
        detail = (
            f"The step does not fit: it needs {_bytes(total)} of the {_bytes(capacity)} of a {wanted.chip.name} core, "
            "of which the compiler reserves some. Take a smaller batch, or more cores than the "
            f"{wanted.cores} of {wanted.name}."
        )
        return Row("tpu", "failed", total / capacity, 1.0, detail, data)
    sentences = [f"The compiler for {wanted.name} refused the step: {' '.join(message.split())[:_LONGEST_MESSAGE]}."]
    named = _OP_NAME.search(message)
    if named:
        # Operations of a called function carry the call's name before their own.
        parts = named[1].split("/")
        names = ["/".join(parts[i:]) for i in range(len(parts))]
        line = next((lines[name] for name in names if name in lines), None)
        data["obstacles"] = [{"op": "", "node": named[1], "reason": message, "line": line}]
        sentences.append(f"The operation is {named[1]}{_at(line)}.")
    return Row("tpu", "failed", None, 1.0, " ".join(sentences), data)


def _not_run(why: str, data: dict[str, Any]) -> Row:
    return Row("tpu", "not run", None, 1.0, f"Not run: {why.rstrip('.')}.", data)


def _at(line: dict[str, Any] | None) -> str:
    if line is None:
        return ""
    code = f": {line['code']}" if line["code"] else ""
    return f" ({line['file']}:{line['number']}, in {line['function']}{code})"


def _bytes(count: float) -> str:
    number, power = _scaled(count, 1024, 3)
    return f"{number} {('bytes', 'KiB', 'MiB', 'GiB')[power]}"


def _flop(count: float) -> str:
    number, power = _scaled(count, 1000, 5)
    return f"{number} {('', 'k', 'M', 'G', 'T', 'P')[power]}flop"


def _scaled(count: float, step: int, highest: int) -> tuple[str, int]:
    """A number divided by `step` until it is smaller, at most `highest` times, to three digits; and how many times."""
    power = 0
    while count >= step and power < highest:
        count, power = count / step, power + 1
    return f"{count:.3g}", power
