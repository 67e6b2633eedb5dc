"""`ganlab export` on the command line; tests/exporting checks the contents of an export."""

import json
import runpy

import numpy as np
import pytest
from click.testing import CliRunner

import ganlab as lab
from ganlab.cli import cli
from ganlab.plugins import manager as plugins

pytestmark = pytest.mark.usefixtures("fresh_plugins")

EXPERIMENT = """
include 'base/wgan_gp.gin'
experiment.dataset = @datasets.gaussian_ring()
experiment.architecture = @architectures.mlp()
experiment.steps = 2
experiment.critic_steps = 1
experiment.batch_size = 16
experiment.checkpoint_every = 1
experiment.evaluate_every = 0
architectures.mlp.width = 8
"""


@pytest.fixture
def ganlab(tmp_path, monkeypatch):
    """Runs a command line in an empty folder; returns its output, or its message if it must fail."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.stderr

    return run


@pytest.fixture(scope="module")
def trained(tmp_path_factory, cpus):
    """A run with checkpoints at steps 1 and 2."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "exp.gin").write_text(EXPERIMENT)
    with plugins.using():
        command = ["run", "--gin", folder / "exp.gin", "--runs", folder / "runs", "--name", "one"]
        result = CliRunner().invoke(cli, [str(argument) for argument in command])
    assert result.exit_code == 0, result.output
    return folder / "runs" / "exp" / "one"


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_export_prints_its_files_and_leaves_the_run_unchanged(ganlab, trained, tmp_path, monkeypatch):
    before = contents(trained)
    assert ganlab("export", trained, "-o", "deep/out", "--checkpoint", 1) == (
        "Wrote deep/out: the generator at step 1, as generator.\n"
        "Read back, it draws the same samples.\n"
        "How to load it: deep/out/README.md\n"
    )
    assert contents(trained) == before
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
        (["-o", "out", "--checkpoint", "7"], "has no checkpoint of step 7; those that are kept are of 1, 2"),
        (["-o", "full/file/out"], "full/file/out cannot be written: "),
    ],
)
def test_mistakes_are_one_message_and_leave_nothing(ganlab, trained, tmp_path, arguments, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    output = ganlab("export", trained, *arguments, code=2)
    assert message in output
    assert output.splitlines()[-1].startswith("Error: ")
    assert sorted(tmp_path.rglob("*")) == before


def test_no_plugin_file_of_the_run_is_executed(ganlab, trained, tmp_path, monkeypatch):
    marker = tmp_path / "executed"
    (trained / "ganlab_plugins.py").write_text(f"open({str(marker)!r}, 'w')\n")
    monkeypatch.chdir(trained)
    ganlab("export", trained, "-o", tmp_path / "out")
    ganlab("sample", trained, "-o", tmp_path / "out.npz")
    assert not marker.exists()
    (trained / "ganlab_plugins.py").unlink()


def test_api_writes_the_same_export_as_the_command(ganlab, trained, tmp_path):
    from ganlab.exporting import export

    ganlab("export", trained, "-o", "by_command", "--format", "keras")
    result = export(lab.Run(trained), tmp_path / "by_api", format="keras")
    assert json.loads((tmp_path / "by_command" / "export.json").read_text()) == json.loads(json.dumps(result))
