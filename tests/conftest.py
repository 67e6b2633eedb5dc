"""Fixtures for all tests."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from ganlab.plugins import machines
from ganlab.plugins import manager as plugins
from ganlab.support.collector import collect_rarely

FORKING = Path(__file__).with_name("forking.py")

collect_rarely()
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Some shells export their width: a table must not depend on where its test runs.
os.environ.pop("COLUMNS", None)
# A shell that runs the suite in the background makes it ignore SIGINT, and every process that a test interrupts too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup does the same with SIGHUP.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def cpus(ganlab_cpus):
    """The names of four logical CPUs for replicas, from the pytest plugin that ganlab ships."""
    return ganlab_cpus


@pytest.fixture(autouse=True)
def users_own_machines(monkeypatch):
    """Experiments name machines again, after a test that resumed a sweep in this process."""
    monkeypatch.setattr(machines, "experiments_are_trusted", True)


@pytest.fixture
def fresh_plugins():
    """Plugins are discovered anew in the test, when they are needed."""
    with plugins.using():
        yield


@pytest.fixture
def same_numbers(request):
    """Makes the module's RANDOM independent of the tests that ran before."""
    from numpy.random import default_rng

    request.module.RANDOM = default_rng(0)


@pytest.fixture(scope="session")
def trained(tmp_path_factory, cpus):
    """Trains a run: `trained(text, *arguments)` returns its folder, which must not be changed."""

    def trained(text, *arguments):
        from click.testing import CliRunner

        from ganlab.cli import cli

        folder = tmp_path_factory.mktemp("trained")
        (folder / "exp.gin").write_text(text)
        with plugins.using():
            command = ["run", "--gin", folder / "exp.gin", "--runs", folder / "runs", "--name", "one", *arguments]
            result = CliRunner().invoke(cli, [str(word) for word in command])
        assert result.exit_code == 0, result.output
        return folder / "runs" / "exp" / "one"

    return trained


@pytest.fixture
def precision():
    """Sets the dtype policy of layers for one test: `precision("mixed_bfloat16")`."""
    import keras

    before = keras.config.dtype_policy()
    yield keras.config.set_dtype_policy
    keras.config.set_dtype_policy(before)


@pytest.fixture(scope="session")
def new_environment():
    """Makes a virtual environment in a folder; it sees the packages installed in this one.

    Of what it returns, `environment("-m", "ganlab", ...)` runs the environment's Python in the folder and returns the
    output; it must succeed. `environment.forked(["ganlab", "run", ...], ["pytest", ...])` runs several commands in
    turn, in forks of one process, and returns their outputs. `environment.install(*folders)` is `pip install -e`
    without a network.
    """
    return _environment


@pytest.fixture
def environment(new_environment, tmp_path):
    """A new virtual environment in the test's folder."""
    return new_environment(tmp_path)


def _environment(path):
    venv = path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("GANLAB_", "PYTHON", "PYTEST_"))}

    def run(*arguments):
        command = [python, *map(str, arguments)]
        done = subprocess.run(command, cwd=path, env=inherited, capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def forked(*commands):
        given = json.dumps([[str(word) for word in command] for command in commands])
        done = subprocess.run([python, FORKING, given], cwd=path, env=inherited, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        codes, outputs = zip(*json.loads(done.stdout), strict=True)
        assert set(codes) == {0}, f"{codes} of {commands}\n{outputs}\n{done.stderr}"
        return outputs

    def install(*folders):
        # hatchling, which builds them, is part of the extra `test`.
        pip = [sys.executable, "-m", "pip", "--python", python]
        pip += ["install", "--quiet", "--no-build-isolation", "--no-deps"]
        subprocess.run([*pip, *(word for folder in folders for word in ("-e", folder))], cwd=path, check=True)

    own = run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    seen = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (path / own / "_seen.pth").write_text(seen)
    run.install, run.forked = install, forked
    return run
