"""The kit as plugin authors use it: `pytest` on their own file, with only ganlab installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

TESTS = """
import sys

sys.path.insert(0, {here!r})
import wrong_parts
{top}
from ganlab.testing import LossConformance
from ganlab_verify.testing.parts import Wasserstein


class TestRight(LossConformance):
    def make(self):
        return Wasserstein()


class TestWrong(LossConformance):
    def make(self):
        return wrong_parts.ReducedLoss()


class TestForgotten(LossConformance):
    pass
"""


def run(folder, *arguments, code=None):
    command = [sys.executable, *(["-c", code] if code else ["-m", "pytest", "-p", "no:cacheprovider", *arguments])]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


@pytest.mark.slow
def test_a_class_with_one_method_inherits_every_test(tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS.format(here=str(HERE), top=""))
    done = run(tmp_path, "-q", "test_mine.py", "-rs")
    assert done.returncode == 1, done.stdout + done.stderr
    # Eleven tests of the right one, and one that the wrong one can be made.
    assert "2 failed, 13 passed, 21 skipped" in done.stdout
    lines = done.stdout.splitlines()
    (headline,) = [at for at, line in enumerate(lines) if "TestWrong.test_shapes_and_dtypes" in line]
    # The message stands alone, without the kit's own lines.
    assert lines[headline + 1].startswith("critic returns the shape (), float32, for 7 scores; it must be (7,)")
    assert "Not checked before test_shapes_and_dtypes passes." in done.stdout
    assert "TestForgotten needs a method make(self) that returns a new loss." in done.stdout


@pytest.mark.slow
def test_tensorflow_that_started_too_early_is_named(tmp_path):
    top = "import tensorflow as tf\nONE = tf.constant(1.0)"
    (tmp_path / "test_mine.py").write_text(TESTS.format(here=str(HERE), top=top))
    done = run(tmp_path, "-q", "test_mine.py", "-k", "TestRight")
    assert done.returncode == 1
    assert "but TensorFlow has started with 1: it was used while tests were collected" in done.stdout


def test_other_peoples_tests_do_not_pay_for_the_plugin(tmp_path):
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_other():\n    assert not {'tensorflow', 'keras', 'gin'} & set(sys.modules)\n"
        "    assert 'ganlab_verify.testing.plugin' in sys.modules\n"
    )
    done = run(tmp_path, "-q", "test_other.py")
    assert done.returncode == 0, done.stdout


def test_pytest_is_needed_for_the_kit_alone(tmp_path):
    code = """
import sys
sys.modules["pytest"] = None
import ganlab, ganlab_verify.check_command, ganlab_verify.testing.suites
try:
    from ganlab.testing import LossConformance
except ganlab.MissingDependencyError as error:
    print(error, "tensorflow" in sys.modules)
"""
    done = run(tmp_path, code=code)
    assert done.stdout.startswith("ganlab.testing is a kit for pytest, which is not installed."), done.stderr
    assert done.stdout.endswith("pip install pytest False\n")
