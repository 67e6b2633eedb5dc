"""Keras' rarely used dependencies are not imported before they are used."""

import subprocess
import sys

import pytest

_SCRIPT = """
import sys
from ganlab.lazy import require
require("tensorflow"), require("keras")
assert "sklearn" not in sys.modules and "scipy.stats" not in sys.modules, "they are imported at once"
import keras
import matplotlib.pyplot
assert keras.wrappers.SKLearnClassifier.__name__ == "SKLearnClassifier"
assert "sklearn" in sys.modules
assert callable(matplotlib.pyplot.figure)
assert not any(type(finder).__name__ == "_LateFinder" for finder in sys.meta_path)
"""


@pytest.mark.slow
def test_scikit_learn_is_imported_when_it_is_used():
    ended = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
