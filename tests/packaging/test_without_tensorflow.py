"""Commands that work without TensorFlow, and the message of those that do not."""

import os
import subprocess
import sys

import pytest

# Code that makes its process behave as if no build of TensorFlow were installed.
ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "keras"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.fixture
def ganlab(tmp_path):
    """Runs a command line in a process without TensorFlow."""

    def ganlab(*arguments):
        code = f"{ABSENT}\nfrom ganlab.cli import main\nsys.argv[1:] = {list(arguments)!r}\nmain()"
        return subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)

    return ganlab


def test_training_names_the_extra_and_leaves_nothing(ganlab, tmp_path):
    done = ganlab("run", "--gin", "quickstart")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: tensorflow is not installed, and this needs it. "
        "Install it: pip install -e '.[cpu]' in ganlab's source tree (or [gpu] on NVIDIA GPUs, [tpu] on TPUs)\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], "Trains the experiment"),
        (["run", "--help"], "--resume"),
        (["plugins"], "gradient_penalty"),
        (["plugins", "new", "soft-slope", "--kind", "strategy"], "Wrote soft-slope"),
        (["config", "show", "--gin", "quickstart"], "experiment.steps = "),
        (["config", "explain", "constraints.gradient_penalty"], "weight: The penalty's factor"),
        (["run", "--gin", "quickstart", "--dry-run"], "experiment.steps = "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_read_only_commands_need_no_tensorflow(ganlab, arguments, words):
    done = ganlab(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout


def test_importing_ganlab_imports_no_tensorflow():
    code = """
import sys
import ganlab, ganlab.cli, ganlab.composition, ganlab.config, ganlab.functional, ganlab.plugins, ganlab.runs
assert [row.name for row in ganlab.plugins.manager.discover().rows if row.status != "loaded"] == []
print([name for name in ("tensorflow", "keras", "matplotlib", "sklearn", "tensorboard") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("by", ["environment", "keras.json"])
def test_other_keras_backend_is_reported(tmp_path, by):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_HOME": str(tmp_path)}
    environment.pop("KERAS_BACKEND", None)
    if by == "environment":
        environment["KERAS_BACKEND"] = "jax"
    else:
        (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    command = [sys.executable, "-m", "ganlab", "run", "--gin", "quickstart"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: Keras is set to the backend 'jax'; ganlab needs 'tensorflow': unset KERAS_BACKEND, or edit "
        "~/.keras/keras.json.\n"
    )
