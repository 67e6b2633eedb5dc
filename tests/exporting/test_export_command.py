"""`ganlab export` on the command line; test_exported.py checks the contents of an export."""

import json
import runpy

import numpy as np
import pytest
from command_lines import mistake_in
from resting_runs import contents


@pytest.mark.slow
def test_export_prints_its_files_and_leaves_the_run_unchanged(ganlab, points, tmp_path, monkeypatch):
    before = contents(points)
    assert ganlab("export", points, "-o", "deep/out", "--checkpoint", 2) == (
        "Wrote deep/out: the generator at step 2, as generator.\n"
        "Read back, it draws the same samples.\n"
        "How to load it: deep/out/README.md\n"
    )
    assert contents(points) == before
    assert json.loads((tmp_path / "deep" / "out" / "export.json").read_text())["format"] == "saved_model"
    page = (tmp_path / "deep" / "out" / "README.md").read_text()
    (tmp_path / "page.py").write_text(page.split("```python\n")[1].split("```")[0])
    monkeypatch.chdir(tmp_path / "deep" / "out")
    values = runpy.run_path(str(tmp_path / "page.py"))
    assert np.asarray(values["more"]).shape == (64, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "full"], "full is a folder with files in it already"),
        (["-o", "out", "--format", "torch"], "'torch' is not one of 'saved_model', 'keras', 'onnx'"),
        (["-o", "out", "--checkpoint", "7"], "has no checkpoint of step 7; those that are kept are of 2, 4"),
        (["-o", "full/file/out"], "full/file/out cannot be written: "),
    ],
)
@pytest.mark.usefixtures("ganlab")
def test_mistakes_are_one_message_and_leave_nothing(points, tmp_path, arguments, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert message in mistake_in(tmp_path, "export", points, *arguments)
