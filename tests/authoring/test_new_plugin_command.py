"""`ganlab plugins new`: correct names and files, and no files after an error."""

import ast
import functools
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_lines import mistake_in
from ganlab_scaffold import OTHERS, TEMPLATES, new_plugin, packages

import ganlab
from ganlab.cli import cli
from ganlab.plugins import manager as plugins


@pytest.fixture
def new(tmp_path, monkeypatch, fresh_plugins):
    """Runs `ganlab plugins new` in an empty folder, with the installed plugins."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GANLAB_PLUGINS", raising=False)
    return lambda *arguments: CliRunner().invoke(cli, ["plugins", "new", *map(str, arguments)])


@pytest.fixture
def refused(new, tmp_path):
    """The message of a command that must fail and must leave no files."""
    return functools.partial(mistake_in, tmp_path, "plugins", "new")


@pytest.fixture(scope="module")
def every_kind(tmp_path_factory):
    """Folders with a generated package of each kind."""
    folders = [tmp_path_factory.mktemp(kind, numbered=False) for kind in (*TEMPLATES, *OTHERS)]
    with plugins.using():
        for folder in folders:
            new_plugin("soft-slope", folder.name, folder)
    return folders


def test_output_lists_the_written_component_and_the_next_commands(new):
    result = new("soft-slope")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "Wrote soft-slope: the constraint constraints.soft_slope, in soft-slope/src/soft_slope/__init__.py.\n\n"
        "Next:\n"
        "  pip install -e soft-slope\n"
        "  pytest soft-slope\n"
        "  ganlab run --gin soft-slope/soft_slope.gin\n"
    )
    written = sorted(str(path) for path in Path("soft-slope").rglob("*") if path.is_file())
    assert written == [
        "soft-slope/.github/workflows/test.yml",
        "soft-slope/.gitignore",
        "soft-slope/README.md",
        "soft-slope/pyproject.toml",
        "soft-slope/soft_slope.gin",
        "soft-slope/src/soft_slope/__init__.py",
        "soft-slope/tests/test_soft_slope.py",
    ]
    assert sorted(path.name for path in Path().iterdir()) == ["soft-slope"]


def test_plugins_group_lists_components_and_suggests_commands(new):
    def run(*arguments):
        return CliRunner().invoke(cli, ["plugins", *arguments])

    assert run().stdout.startswith("constraints: ")
    assert "\n  new " in run("--help").stdout
    for arguments, message in [
        (["neww"], "No such command 'neww'. Did you mean 'new'?"),
        (["--json", "new", "soft-slope"], "Put options of 'ganlab plugins new' after its name."),
    ]:
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.stderr.endswith(f"Error: {message}\n")
    assert list(Path().iterdir()) == []


def test_component_name_drops_the_ganlab_prefix_of_the_package(new):
    assert new("ganlab-Soft_slope", "--kind", "loss").exit_code == 0
    folder = Path("ganlab-Soft_slope")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == "ganlab-Soft_slope"
    assert project["entry-points"]["ganlab"] == {"ganlab_soft_slope": "ganlab_soft_slope"}
    assert project["dependencies"] == [f"ganlab-tf>={'.'.join(ganlab.__version__.split('.')[:2])}"]
    found = use(folder / "src/ganlab_soft_slope/__init__.py")
    assert found.component("losses", "soft_slope").factory.make.__name__ == "SoftSlope"


def use(path):
    found = plugins.discover(local=path.resolve())
    assert [(row.status, row.error) for row in found.rows if row.name == plugins.LOCAL_MODULE] == [("loaded", "")]
    return plugins.use(found)


def test_importing_the_packages_does_not_import_tensorflow(every_kind):
    code = (
        "import importlib, sys\n"
        "for kind in sys.argv[1:]:\n"
        "    sys.path.insert(0, kind + '/soft-slope/src')\n"
        "    sys.modules.pop('soft_slope', None)\n"
        "    assert importlib.import_module('soft_slope').__file__.startswith(sys.path[0]), kind\n"
        "    assert not {'tensorflow', 'keras'} & set(sys.modules), kind\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *map(str, every_kind)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_generated_files_pass_the_linter(every_kind):
    ruff = [sys.executable, "-m", "ruff"]
    rules = ["--isolated", "--no-cache", "--line-length", "120"]
    google = ["--select", "D", "--config", 'lint.pydocstyle.convention = "google"']
    own = ["--config", 'lint.isort.known-first-party=["soft_slope"]']  # as it is where ruff runs in its folder
    packages = [folder / "soft-slope" for folder in every_kind]
    for command in (
        ["check", *rules, "--select", "E,F,W,I,B,UP,N,PT,RUF,SIM,C4", *own, *packages],
        ["check", *rules, *google, *(package / "src" for package in packages)],
        ["format", "--check", *rules, *packages],
    ):
        done = subprocess.run([*ruff, *command], cwd=every_kind[0].parent, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_constraint_template_has_under_thirty_lines_of_code(new):
    new("soft-slope")
    (made,) = [n for n in ast.walk(ast.parse(Path("soft-slope/src/soft_slope/__init__.py").read_text())) if is_class(n)]
    code = set()
    for node in ast.walk(made):
        if isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            code.add(node.lineno)
    assert 5 < len(code) < 30


def is_class(node):
    return isinstance(node, ast.ClassDef)


BAD_NAMES = ["1st", "a.b", "", "class", "true", "a--b", "-a", "a-", "a/b", "../a", "a b", "größe", "tf", "ganlab-1st"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_invalid_name_is_refused(refused, name):
    message = refused("--", name)
    assert message.startswith(f"{name!r} cannot name a plugin: ")
    assert "For example: ganlab plugins new " in message


def test_refusal_suggests_a_similar_valid_name(refused, new):
    assert refused("Größe 2").endswith("For example: ganlab plugins new gr-e-2")
    assert refused("2 slopes").endswith("For example: ganlab plugins new soft-slope")
    assert new("gr-e-2").exit_code == 0


@pytest.mark.parametrize(
    ("name", "kind", "beginning"),
    [
        ("gradient-penalty", "constraint", "constraints.gradient_penalty already exists: 'ganlab_constraints' of"),
        ("ganlab-hinge", "loss", "losses.hinge already exists: 'ganlab_losses' of ganlab"),
        ("ganlab-losses", "loss", "There is already a plugin 'ganlab_losses'; 'ganlab plugins' lists them."),
        ("pluggy", "loss", "The distribution pluggy "),
        ("random", "loss", "There is a Python module 'random', which the plugin's module would hide."),
    ],
)
def test_taken_name_is_refused(refused, name, kind, beginning):
    message = refused(name, "--kind", kind)
    assert message.startswith(beginning)
    assert message.endswith("Choose another name.")


def test_name_of_another_kind_is_free(new):
    assert new("gradient-penalty", "--kind", "loss").exit_code == 0


@pytest.mark.parametrize("there", ["folder", "file", "dangling link"])
def test_existing_folder_is_refused(refused, tmp_path, there):
    path = tmp_path / "soft-slope"
    if there == "folder":
        path.mkdir()
    elif there == "file":
        path.write_text("mine")
    else:
        path.symlink_to("nowhere")
    assert refused("soft-slope") == "soft-slope already exists. Choose another name, or another --directory."


def test_unknown_kind_and_missing_directory_are_refused(refused):
    assert "'penalty' is not one of 'constraint'" in refused("soft-slope", "--kind", "penalty")
    assert "Directory 'nowhere' does not exist" in refused("soft-slope", "--directory", "nowhere")


def test_failed_write_leaves_no_files(refused, monkeypatch):
    written = []

    def write_text(path, text, encoding):
        written.append(path)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        path.open("w").write(text)

    monkeypatch.setattr(packages.Path, "write_text", write_text)
    assert refused("soft-slope") == (
        "soft-slope cannot be written: No space left on device. Choose another --directory."
    )
    assert len(written) == 3
