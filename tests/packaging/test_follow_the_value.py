"""The page that follows one value through the code, and the experiment's own way, held against the calls of a run."""

import json
import re
import subprocess
import sys

import pytest
from pages import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\S+\.py)` \| `(\S+)` \|", PAGE, flags=re.MULTILINE)

# How often a whole experiment comes back to a module, from `ganlab.run.train` on.
MOST_RETURNS = 20

# Prints every call of a row's function, each followed by whether an argument holds the value, and the modules of the
# core whose calls have the experiment as an argument, except self; each stay in a module once.
PROGRAM = """
import inspect, json, os, sys, threading

root, rows = sys.argv.pop(1) + os.sep, {tuple(row) for row in json.loads(sys.argv.pop(1))}

def holds(value, depth=0):
    if isinstance(value, float):
        return value == 7.25
    if isinstance(value, str):
        return "7.25" in value
    if depth > 8:
        return False
    if isinstance(value, dict):
        return any(holds(item, depth + 1) for item in list(value.values()))
    if isinstance(value, (list, tuple)):
        return any(holds(item, depth + 1) for item in value)
    if type(value).__module__.startswith("ganlab"):
        return holds(getattr(value, "__dict__", {}), depth + 1)
    return False

calls, experiments, stays = [], [], []

def called(frame, event, _):
    code = frame.f_code
    if not code.co_filename.startswith(root):
        return
    file = code.co_filename.removeprefix(root)
    more = sum(bool(code.co_flags & flag) for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS))
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + more]
    if (file, code.co_qualname) in rows:
        calls.append((file, code.co_qualname, any(holds(frame.f_locals.get(name)) for name in names)))
    if (file, code.co_qualname) == ("ganlab/run.py", "train"):
        experiments.append(frame.f_locals["experiment"])
    if file.startswith("ganlab/") and stays[-1:] != [file]:
        if any(one is frame.f_locals.get(name) for one in experiments for name in names if name != "self"):
            stays.append(file)

import keras  # its own calls need no tracing
from ganlab.cli import main
threading.settrace(called)  # replicas run in threads; without a local trace function, only calls are traced
sys.settrace(called)
try:
    main()
finally:
    sys.settrace(None)
    for call in calls:
        print("CALL", *call)
    print("STAYS", *stays)
"""
# Before the graph computes with it, the value itself is in an argument; after that, metrics and weights are.
LAST_WITH_THE_VALUE = ("ganlab/telemetry/tensorboard_writer.py", "TensorBoardWriter.hparams")


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """The calls of a run, and the stays of its experiment."""
    settings = ("constraints.gradient_penalty.weight=7.25", "experiment.strategy=@strategies.one_device()")
    settings += tuple(
        f"experiment.{setting}" for setting in ("steps=2", "log_every=1", "evaluators=[]", "diagnostics=[]")
    )
    params = [word for setting in settings for word in ("--param", setting)]
    given = ["run", "--gin", "swiss_roll", "--runs", str(tmp_path_factory.mktemp("traced")), *params]
    command = [sys.executable, "-c", PROGRAM, str(ROOT), json.dumps(ROWS), *given]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    (stays,) = (words[1:] for words in lines if words[:1] == ["STAYS"])
    return [tuple(words[1:]) for words in lines if words[:1] == ["CALL"]], stays


@pytest.mark.slow
def test_an_experiment_seldom_comes_back_to_a_module(traced):
    _, stays = traced
    assert stays[:2] == ["ganlab/run.py", "ganlab/training/start.py"]
    assert len(stays) - len(set(stays)) <= MOST_RETURNS, json.dumps(stays, indent=0)


@pytest.mark.slow
def test_every_row_is_a_call_in_this_order(traced):
    calls, _ = traced
    with_the_value = ROWS.index(LAST_WITH_THE_VALUE)
    at = -1
    for number, (module, function) in enumerate(ROWS):
        at = next(
            (
                i
                for i, (file, name, held) in enumerate(calls)
                if i > at and (file, name) == (module, function) and (held == "True" or number > with_the_value)
            ),
            None,
        )
        assert at is not None, (
            f"row {number + 1}: {function} of {module} is not called after the row before it: {list(enumerate(calls))}"
        )


def test_returns_are_counted_as_the_page_says():
    modules = [module for module, _ in ROWS]
    returns = sum(module in modules[:i] for i, module in enumerate(modules))
    assert f"a return: there are {returns}." in PAGE
    assert returns == PAGE.count("| (return) ") <= 12
