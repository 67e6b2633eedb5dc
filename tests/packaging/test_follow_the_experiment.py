"""How often an experiment comes back to a module on its way from `ganlab.run.train`, handed on whole."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 20

# Prints the module of each call that has the experiment as an argument, except self; one line for a stay.
PROGRAM = """
import sys, threading

root, folder = sys.argv.pop(1), sys.argv.pop(1)
import keras
from ganlab.composition import compose
from ganlab.run import train
from ganlab.runs.experiment_source import read_experiment

settings = ["steps=2", "log_every=1", "evaluators=[]", "diagnostics=[]", "strategy=@strategies.one_device()"]
experiment = compose(read_experiment(["swiss_roll"], [f"experiment.{setting}" for setting in settings]))
stays = []

def called(frame, event, _):
    code = frame.f_code
    if code.co_filename.startswith(root):
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        held = any(frame.f_locals.get(name) is experiment for name in names if name != "self")
        if held and stays[-1:] != [code.co_filename]:
            stays.append(code.co_filename)

threading.settrace(called)
sys.settrace(called)
try:
    train(experiment, folder)
finally:
    sys.settrace(None)
    print("STAYS", *(name.removeprefix(root) for name in stays))
"""


@pytest.mark.slow
def test_an_experiment_seldom_comes_back_to_a_module(tmp_path):
    command = [sys.executable, "-c", PROGRAM, f"{ROOT / 'ganlab'}/", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (stays,) = (line.split()[1:] for line in done.stdout.splitlines() if line.startswith("STAYS "))
    assert stays[:2] == ["run.py", "training/start.py"]
    assert len(stays) - len(set(stays)) <= MOST, json.dumps(stays, indent=0)
