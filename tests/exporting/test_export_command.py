"""`ganlab export` on the command line; test_exported.py checks the contents of an export."""

import json
import runpy

import numpy as np
import pytest

import ganlab as lab


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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
def test_mistakes_are_one_message_and_leave_nothing(ganlab, points, tmp_path, arguments, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    output = ganlab("export", points, *arguments, code=2)
    assert message in output
    assert output.splitlines()[-1].startswith("Error: ")
    assert sorted(tmp_path.rglob("*")) == before


def test_no_plugin_file_of_the_run_is_executed(ganlab, points, tmp_path, monkeypatch):
    marker = tmp_path / "executed"
    (points / "ganlab_plugins.py").write_text(f"open({str(marker)!r}, 'w')\n")
    monkeypatch.chdir(points)
    ganlab("export", points, "-o", tmp_path / "out")
    ganlab("sample", points, "-o", tmp_path / "out.npz")
    assert not marker.exists()
    (points / "ganlab_plugins.py").unlink()


def test_api_writes_the_same_export_as_the_command(ganlab, points, tmp_path):
    from ganlab.exporting import export

    ganlab("export", points, "-o", "by_command", "--format", "keras")
    result = export(lab.Run(points), tmp_path / "by_api", format="keras")
    assert json.loads((tmp_path / "by_command" / "export.json").read_text()) == json.loads(json.dumps(result))
