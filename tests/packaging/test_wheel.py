"""The contents of the wheel, and that they suffice to run ganlab."""

import configparser
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from pages import ROOT

import ganlab
from ganlab.config import shipped_gin_files

BUILTIN = ROOT / "plugins" / "ganlab_builtin"
# Layers are no kind of component: architectures import them.
KINDS = {path.name for path in BUILTIN.iterdir() if (path / "__init__.py").is_file()} - {"layers"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel built from this source tree, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def files(folder, pattern="*"):
    return {path.relative_to(folder).as_posix() for path in folder.rglob(pattern) if path.is_file()}


def test_wheel_contains_every_module(wheel):
    source = {f"ganlab/{name}" for name in files(ROOT / "ganlab", "*.py")} | files(ROOT / "plugins", "*.py")
    assert {"ganlab/plugins/manager.py", "ganlab_builtin/constraints/gradient_penalty.py"} <= source
    assert files(wheel, "*.py") == source
    assert (wheel / "ganlab" / "py.typed").is_file()


@pytest.mark.parametrize(
    ("inside", "source"),
    [
        ("ganlab/gin_files", "gin"),
        ("ganlab_scaffold/templates", "plugins/ganlab_scaffold/templates"),
        ("ganlab_tensorboard/static", "plugins/ganlab_tensorboard/static"),
    ],
)
def test_wheel_contains_the_files_of_a_folder(wheel, inside, source):
    assert files(wheel / inside) == files(ROOT / source)


def test_wheel_contains_the_licenses_of_others(wheel):
    assert files(wheel / "ganlab_tensorboard" / "static") >= {"vendor/uPlot.js", "vendor/uPlot-LICENSE.txt"}
    assert files(wheel / "ganlab_builtin" / "datasets" / "files") >= {"LICENSES.txt", "digits.npz", "china.jpg"}


def test_wheel_contains_no_foreign_package(wheel):
    top = {path.name for path in wheel.iterdir()}
    plugins = {path.name for path in (ROOT / "plugins").iterdir() if (path / "__init__.py").is_file()}
    assert top == {"ganlab", *plugins, f"ganlab_tf-{ganlab.__version__}.dist-info"}
    assert "gin" not in top  # belongs to gin-config


def test_every_first_party_package_is_an_entry_point(wheel):
    points = configparser.ConfigParser()
    points.read(next(wheel.glob("*.dist-info")) / "entry_points.txt")
    trackers = {f"ganlab_{name}": f"ganlab_builtin.trackers:{name}" for name in ("mlflow", "wandb", "notify")}
    trackers |= {"ganlab_trackers": "ganlab_builtin.trackers:unknown", "ganlab_remote": "ganlab_remote"}
    assert dict(points["ganlab"]) == {f"ganlab_{kind}": f"ganlab_builtin.{kind}" for kind in KINDS} | trackers
    assert points["ganlab.commands"]["dataset"] == "ganlab_builtin.dataset_command:dataset"
    assert dict(points["tensorboard_plugins"]) == {"ganlab": "ganlab_tensorboard.plugin:GanlabTab"}
    assert dict(points["console_scripts"]) == {"ganlab": "ganlab.cli:main"}


def test_each_build_of_tensorflow_is_an_extra_and_none_is_required(wheel):
    metadata = Parser().parsestr((next(wheel.glob("*.dist-info")) / "METADATA").read_text())
    assert {"cpu", "gpu", "tpu", "test"} <= set(metadata.get_all("Provides-Extra"))
    required = metadata.get_all("Requires-Dist")
    tensorflow = [line for line in required if line.startswith(("tensorflow", "keras"))]
    assert tensorflow
    assert all("extra ==" in line for line in tensorflow)
    assert len([line for line in required if "extra ==" not in line]) <= 11


def test_the_wheel_has_the_name_version_authors_and_pythons_of_the_package(wheel):
    metadata = Parser().parsestr((next(wheel.glob("*.dist-info")) / "METADATA").read_text())
    assert metadata["Version"] == ganlab.__version__
    # Indexes ignore case, "-", "_" and "." in names, and "gan-lab" is taken.
    assert re.sub(r"[-_.]", "", metadata["Name"]) not in {"ganlab"}
    assert metadata["Author"] == "The ganlab authors"
    tested = sorted(set(re.findall(r'python: "(3\.\d+)"', (ROOT / ".github" / "workflows" / "ci.yml").read_text())))
    claimed = [line.split(" :: ")[-1] for line in metadata.get_all("Classifier") if " :: Python :: 3." in line]
    assert claimed == tested == ["3.11", "3.12", "3.13"]
    assert PROJECT["dynamic"] == ["version"]


def test_an_unpacked_wheel_finds_its_plugins_its_experiment_files_and_its_templates(wheel, tmp_path):
    def ganlab_of_the_wheel(*words):
        code = "import ganlab, sys; from ganlab.cli import main; print(ganlab.__file__, file=sys.stderr); main()"
        command, environment = [sys.executable, "-c", code, *words], {**os.environ, "PYTHONPATH": str(wheel)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert Path(done.stderr.strip()) == wheel / "ganlab" / "__init__.py"
        return done.stdout

    assert "experiment.dataset = @datasets.digits()\n" in ganlab_of_the_wheel("config", "show", "--gin", "quickstart")
    ganlab_of_the_wheel("plugins", "new", "soft-slope")
    assert (tmp_path / "soft-slope" / "pyproject.toml").is_file()
    assert ROOT / "gin" / "quickstart.gin" in shipped_gin_files()  # in this process, from the source tree
