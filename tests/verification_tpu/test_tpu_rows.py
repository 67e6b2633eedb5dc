"""The rows of a compiler that rejects a step or dies."""

import sys
from pathlib import Path

import pytest
from ganlab_verify import Source
from ganlab_verify.process import ProcessError
from ganlab_verify.tpu import checking, environment
from ganlab_verify.tpu.chips import topology

SOURCE = Source(("quickstart",))


@pytest.fixture
def lowered(monkeypatch):
    """Replaces lowering by a fixed answer, and the interpreter by one without the compiler."""
    answer = {"batch_size": 8, "asked_batch_size": 8, "obstacles": [], "refused": "", "lines": {}}

    def call(target, source, options, *, cpus):
        Path(options["module"]).write_bytes(b"")
        return answer

    monkeypatch.setattr(checking, "call", call)
    monkeypatch.setattr(environment, "compiler_python", lambda: (sys.executable, {"PYTHONNOUSERSITE": "1"}))
    return answer


def test_a_compiler_that_dies_proves_nothing(lowered, monkeypatch, tmp_path):
    script = tmp_path / "compiling.py"
    script.write_text("import os, sys; print('out of this world', file=sys.stderr, flush=True); os.abort()")
    monkeypatch.setattr(checking, "COMPILING", script)
    row = checking.check(SOURCE)
    assert (row.status, row.figure) == ("not run", None)
    assert "died: out of this world (signal 6)" in row.detail


def test_lowering_that_raises_has_failed(lowered, monkeypatch):
    def call(target, source, options, *, cpus):
        raise ProcessError("The batch is too small.", "the trace")

    monkeypatch.setattr(checking, "call", call)
    row = checking.check(SOURCE)
    assert (row.status, row.detail, row.data["traceback"]) == ("failed", "The batch is too small.", "the trace")


def test_a_rejected_step_has_the_line_of_its_node():
    line = {"file": "mine.py", "number": 7, "function": "penalty", "code": "y = tf.strange(x)"}
    message = 'UNIMPLEMENTED: strange: %s = f32[3] strange(), metadata={op_name="PartitionedCall/scope/Strange"}'
    row = checking._refused(message, {"scope/Strange": line, "Strange": {}}, topology("v5e:2x2"), {})
    assert row.status == "failed"
    assert "UNIMPLEMENTED: strange" in row.detail
    assert "PartitionedCall/scope/Strange (mine.py:7, in penalty: y = tf.strange(x))" in row.detail
    assert row.data["obstacles"][0]["line"] == line


@pytest.mark.parametrize(
    "message",
    [
        "RESOURCE_EXHAUSTED: the total memory required for HLO temporaries (32.00G) exceeds available HBM (15.75G).",
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 32.00G of 15.75G hbm.",
    ],
)
def test_a_step_that_does_not_fit_has_a_figure(message):
    row = checking._refused(message, {}, topology("v5e:2x2"), {})
    assert (row.status, row.figure, row.limit) == ("failed", 2.0, 1.0)
    assert "32 GiB of the 16 GiB" in row.detail
