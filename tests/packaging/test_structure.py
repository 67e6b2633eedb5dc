"""The structure that docs/architecture.md describes."""

import shutil
import subprocess
import sys
import tomllib

import pytest
from pages import ROOT

from ganlab.plugins.manager import KINDS

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
WITHOUT_TENSORFLOW = ("interfaces", "support", "plugins", "config", "runs", "cli", "run", "telemetry")
APPLICATIONS_WITHOUT_TENSORFLOW = (
    "ganlab_archive",
    "ganlab_benchmark",
    "ganlab_compare",
    "ganlab_devices",
    "ganlab_remote",
    "ganlab_runs",
    "ganlab_scaffold",
    "ganlab_sweep",
    "ganlab_tensorboard",
)


def test_every_package_has_its_layer():
    (layers,) = (contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
    named = {name.strip() for layer in layers for name in layer.split("|")} | {"roles", "hookspecs", *KINDS}
    there = {
        path.stem for path in (ROOT / "ganlab").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert named == there - {"__init__"}


def test_packages_are_imported_without_tensorflow():
    paths = [
        path.relative_to(ROOT)
        for package in WITHOUT_TENSORFLOW
        for path in [*(ROOT / "ganlab" / package).rglob("*.py"), *(ROOT / "ganlab").glob(f"{package}.py")]
    ]
    plugins = ROOT / "plugins"
    for package in APPLICATIONS_WITHOUT_TENSORFLOW:
        paths += [path.relative_to(plugins) for path in (plugins / package).rglob("*.py")]
    modules = [".".join(path.with_suffix("").parts) for path in paths]
    assert len(modules) > 100
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}:\n"
        "    importlib.import_module(name.removesuffix('.__init__'))\n"
        "    if {'tensorflow', 'keras'} & set(sys.modules): sys.exit(f'{name} imports TensorFlow')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "code", "broken"),
    [
        ("support/paths.py", "def f():\n    from ganlab.runs import find_runs\n", "Layers"),
        ("interfaces/loss.py", "if TYPE_CHECKING:\n    from ganlab.run import Run\n", "Layers"),
        ("runs/info.py", "from ganlab.runs import directory\n", "circle"),
        ("config/types.py", "import ganlab\n", "ganlab itself"),
        ("training/graph/step.py", "from ganlab_builtin.constraints import R1\n", "knows no plugin"),
        ("runs/naming.py", "import gin\n", "gin"),
    ],
)
def test_import_linter_finds_what_breaks_a_rule(tmp_path, file, code, broken):
    pytest.importorskip("importlinter")
    for folder in ("ganlab", "plugins"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / "ganlab" / file
    path.write_text(path.read_text() + "\n" + code)
    program = (
        "import sys\nsys.path[:0] = ['.', 'plugins']\n"
        "from importlinter.cli import lint_imports\nsys.exit(lint_imports(no_cache=True))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if " BROKEN" in line and broken in line], done.stdout
