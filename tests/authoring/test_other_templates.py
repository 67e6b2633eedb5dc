"""Generated packages are well formed, and those without a component for experiments are tested against the contract."""

import ast
import importlib.util
import json

import pytest
from click.testing import CliRunner
from ganlab_scaffold import OTHERS, TEMPLATES, new_plugin

import ganlab
from ganlab import config
from ganlab.cli import cli
from ganlab.plugins import manager as plugins


@pytest.fixture
def made(tmp_path, monkeypatch, fresh_plugins):
    """Writes the package of a kind, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GANLAB_PLUGINS", raising=False)
    return lambda kind: new_plugin("soft-slope", kind, tmp_path)


@pytest.mark.parametrize("kind", [*TEMPLATES, *OTHERS])
def test_generated_files_are_well_formed(made, kind):
    package = made(kind)
    assert package.next.startswith("ganlab ")
    assert "None" not in package.next
    found = plugins.use(plugins.discover(local=package.module))
    assert (found.rows[-1].status, found.rows[-1].warnings) == ("loaded", ())
    components = {**TEMPLATES, **OTHERS}[kind]
    if kind not in ("tracker", "command"):
        assert found.component(components, "soft_slope").summary.endswith(".")
    declared = [n for n in ast.parse(package.module.read_text()).body if isinstance(n, ast.Assign)]
    assert ast.unparse(declared[0]) == f"GANLAB_CONTRACT = {ganlab.CONTRACT}"
    if package.experiment is not None:
        recipe = config.load([package.experiment])
        assert kind in OTHERS or f"{components}.soft_slope" in str(config.render(recipe))
    for path in package.folder.rglob("*.*"):
        assert "$" not in path.read_text().replace("${{", "") if path.is_file() else True


@pytest.mark.parametrize("kind", ["tracker", "command"])
def test_plugins_check_tests_hooks(made, kind):
    package = made(kind)

    def check():
        done = CliRunner().invoke(cli, ["plugins", "check", "--plugin-file", str(package.module), "--json"])
        (row,) = json.loads(done.stdout)["components"]
        return done.exit_code, row

    code, row = check()
    assert (code, row["component"], row["status"], row["passed"]) == (0, "hooks of ganlab_plugins", "passed", 2)
    text = package.module.read_text()
    if kind == "tracker":
        package.module.write_text(text.replace('_write(run, {"status": status})', 'raise OSError("no\\nservice")'))
        message = "ganlab_run_end raises OSError: no\nservice"
    else:
        package.module.write_text(text.replace('command("soft-slope")', 'command("sweep")'))
        message = "'ganlab sweep' is ganlab's own command"
    code, row = check()
    assert (code, row["status"]) == (1, "failed")
    assert message in str(next(iter(row["failures"].values())))


def test_help_lists_the_generated_command(made):
    package = made("command")
    package.module.rename("ganlab_plugins.py")
    done = CliRunner().invoke(cli, ["--help"])
    assert "\n  soft-slope " in done.stdout
    assert package.next == "ganlab soft-slope --help"


WRONG = {
    "DiagnosticConformance": (
        "import numpy\nclass Wrong(ganlab.Diagnostic):\n    def look(self, critic):\n"
        "        return ganlab.Findings(figures={'x': float(numpy.random.random())})\n",
        "test_one_critic_gives_the_same_findings",
    ),
    "FeaturesConformance": (
        "class Wrong(ganlab.Features):\n    def embed(self, x):\n"
        "        flat = x.reshape(len(x), -1)\n        return flat - flat.mean(axis=0)\n",
        "test_rows_are_independent",
    ),
    "SearchConformance": (
        "class Wrong(ganlab.Search):\n    def start(self, space, **settings):\n        self.space = space\n"
        "    def propose(self):\n        return {name: '7' for name in self.space}\n",
        "test_proposals_are_within_the_space_and_end",
    ),
    "LauncherConformance": (
        "import subprocess\nclass Wrong(ganlab.Launcher):\n"
        "    def start(self, command, *, environment, folder, log):\n"
        "        return Job(subprocess.Popen(command, stdout=log.open('ab')))\n"
        "class Job(ganlab.Job):\n    def __init__(self, p):\n        self.p = p\n"
        "    def poll(self):\n        return self.p.poll()\n    def stop(self):\n        self.p.terminate()\n",
        "test_a_command_runs_as_it_is_told",
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("cpus")
def test_wrong_component_fails_its_conformance_test(name, tmp_path):
    source, test = WRONG[name]
    path = tmp_path / "wrong.py"
    path.write_text("import ganlab\n" + source)
    spec = importlib.util.spec_from_file_location("wrong", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    base = getattr(ganlab.testing, name)
    kind = type("Test", (base,), {"make": lambda self: module.Wrong()})
    with pytest.raises(pytest.fail.Exception):
        getattr(kind(), test)()
