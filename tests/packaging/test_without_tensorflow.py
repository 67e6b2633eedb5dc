"""Commands that work without TensorFlow, and the message of those that do not."""

import os
import subprocess
import sys

import pytest
from resting_runs import make

# Code that makes its process behave as if no build of TensorFlow were installed.
ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "keras"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def test_training_names_the_extra_and_leaves_nothing(tmp_path):
    code = f"{ABSENT}\nfrom ganlab.cli import main\nsys.argv[1:] = ['run', '--gin', 'quickstart']\nmain()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: tensorflow is not installed, and this needs it. "
        "Install it: pip install -e '.[cpu]' in ganlab's source tree (or [gpu] on NVIDIA GPUs, [tpu] on TPUs)\n"
    )
    assert list(tmp_path.iterdir()) == []


# Command lines that succeed, and words that they print.
READ_ONLY = {
    "--help": "Trains the experiment",
    "run --help": "--resume",
    "plugins": "gradient_penalty",
    "plugins new soft-slope --kind strategy": "Wrote soft-slope",
    "config show --gin quickstart": "experiment.steps = ",
    "config explain constraints.gradient_penalty": "weight: The penalty's factor",
    "run --gin quickstart --dry-run": "experiment.steps = ",
}


def test_read_only_commands_need_no_tensorflow(tmp_path):
    code = f"""{ABSENT}
from click.testing import CliRunner
from ganlab.cli import cli
for line, words in {READ_ONLY!r}.items():
    result = CliRunner().invoke(cli, line.split())
    assert (result.exit_code, result.stderr) == (0, "") and words in result.stdout, f"{{line}}\\n{{result.output}}"
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# Of a run at `one`: the command lines, in turn, and the exit codes other than 0.
LIGHT = {
    "runs": ["runs --help", "runs list .", "runs list . --json", "runs show one", "runs show one --json"],
    "archives": ["runs archive one -o a.tgz", "runs rm --yes one", "runs unarchive a.tgz -o .", "runs show one"],
    "compare": ["compare one", "compare one --html a.html"],
    "sweep": ["sweep --help", "sweep --gin quickstart --grid experiment.batch_size=[8,16] --dry-run"],
    "samples": ["sample --help", "sample nowhere -o x.png", "export --help", "export nowhere -o x"],
}


@pytest.mark.parametrize("lines", LIGHT.values(), ids=LIGHT)
def test_commands_import_nothing_heavy(tmp_path, lines):
    make(tmp_path / "one")
    heavy = {"tensorflow", "keras", "matplotlib", "scipy.stats", "sklearn", "tensorboard", "PIL", "pandas"}
    heavy |= {"numpy"} if lines[0].startswith("runs") else set()
    code = f"""
import sys
from click.testing import CliRunner
from ganlab.cli import cli
for line in {lines!r}:
    result = CliRunner().invoke(cli, line.split())
    assert result.exit_code == (2 if "nowhere" in line else 0), result.output
print({heavy!r} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_importing_ganlab_imports_no_tensorflow():
    code = """
import sys, ganlab.hookspecs
import ganlab, ganlab.cli, ganlab.composition, ganlab.config, ganlab.functional, ganlab.plugins, ganlab.runs
dir(ganlab), ganlab.errors, ganlab.pictures, ganlab.testing, ganlab.lazy, ganlab.roles, ganlab.Run
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
