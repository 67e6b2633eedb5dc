"""Fixtures for all tests."""

import os
import signal
import subprocess
import sys
import sysconfig

import pytest

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


@pytest.fixture
def precision():
    """Sets the dtype policy of layers for one test: `precision("mixed_bfloat16")`."""
    import keras

    before = keras.config.dtype_policy()
    yield keras.config.set_dtype_policy
    keras.config.set_dtype_policy(before)


@pytest.fixture
def environment(tmp_path):
    """A new virtual environment, which sees the packages installed in this one.

    `environment("-m", "ganlab", ...)` runs its Python in the test's folder and returns the output; it must succeed.
    `environment.install(folder)` is `pip install -e` without a network.
    """
    venv = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("GANLAB_", "PYTHON", "PYTEST_"))}

    def run(*arguments):
        command = [python, *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, env=inherited, capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def install(folder):
        # hatchling, which builds it, is part of the extra `test`.
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "-e", folder]
        subprocess.run([*pip, "--quiet", "--no-build-isolation", "--no-deps"], cwd=tmp_path, check=True)

    own = run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    seen = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (tmp_path / own / "_seen.pth").write_text(seen)
    run.install = install
    return run
