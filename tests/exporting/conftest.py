"""Short runs, and a Python that has TensorFlow but not ganlab."""

import pytest
from command_lines import command
from short_runs import DIGITS, POINTS

# For the interpreter's start: makes ganlab missing, as on another machine.
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0].startswith("ganlab"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""


@pytest.fixture(scope="session")
def points(trained):
    """A run of an MLP on points in the plane, with checkpoints of steps 2 and 4."""
    return trained(POINTS)


@pytest.fixture(scope="session")
def digits(trained):
    """A run of convolutions with batch normalization and an average, on two replicas."""
    return trained(DIGITS)


@pytest.fixture
def ganlab(tmp_path, monkeypatch, fresh_plugins):
    """Runs a command line in an empty folder; returns its output, or its message if it must fail with a code."""
    monkeypatch.chdir(tmp_path)
    return command


@pytest.fixture
def without_ganlab(environment):
    """A new environment, as `environment`, in which neither ganlab nor its plugins can be imported."""
    own = environment("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    environment("-c", f"open({own + '/_blocked.py'!r}, 'w').write({BLOCKED!r})")
    environment("-c", f"open({own + '/_blocked.pth'!r}, 'w').write('import _blocked')")
    return environment
