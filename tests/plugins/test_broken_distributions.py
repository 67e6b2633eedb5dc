"""Broken plugins, installed by pip, never affect a run that does not use them, and are explained to one that does."""

import json
import os
import subprocess
import sys

import pytest

from ganlab import __version__

GIN = """\
include 'base/toy.gin'

experiment.dataset = @datasets.gaussian_ring()
experiment.constraints = [@constraints.spectral_norm()]
experiment.steps = 1
experiment.batch_size = 8
architectures.mlp.width = 4
"""
COMPONENT = """\
import ganlab


class Mine(ganlab.Constraint):
    '''Does nothing.'''


@ganlab.hookimpl
def ganlab_constraints():
    return {'mine': Mine}
"""

# The fault, with the module's source, the status of the plugin's row and the reason in it.
BROKEN = {
    "import-error": (
        "import no_such_module_at_all\n" + COMPONENT,
        "broken",
        "ModuleNotFoundError: No module named 'no_such_module_at_all'",
    ),
    "leaves": ("raise SystemExit(3)\n" + COMPONENT, "broken", "SystemExit: 3"),
    "misspelt-hook": (
        COMPONENT.replace("def ganlab_constraints", "def ganlab_constraint"),
        "broken",
        "unknown hook 'ganlab_constraint'. Did you mean 'ganlab_constraints'?",
    ),
    "wrong-type": (
        COMPONENT.replace("{'mine': Mine}", "[Mine]"),
        "broken",
        "ganlab_constraints returned list; it must return a dict of name to factory",
    ),
    "tomorrow": (
        "from ganlab import ATradeOfTomorrow\n\nGANLAB_CONTRACT = 99\n" + COMPONENT,
        "incompatible",
        "written for plugin contract 99, where this ganlab has contract 2. Upgrade ganlab, or install the plugin's "
        "version for contract 2",
    ),
}
# Clashes with one of ganlab's own components, which the experiment's included file names but the experiment does not
# use.
CLASH = COMPONENT.replace("'mine'", "'gradient_penalty'")
CLASHING = (
    "Two plugins offer constraints.gradient_penalty: 'bad_clash' of ganlab-bad 0.7 and 'ganlab_constraints' of "
    f"ganlab-tf {__version__}. Disable one of them: --no-plugin bad_clash or --no-plugin ganlab_constraints. "
    "Or write constraints.bad_clash.gradient_penalty or "
    "constraints.ganlab_constraints.gradient_penalty."
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder in which all of them are installed by pip, as the plugins of one distribution."""
    folder = tmp_path_factory.mktemp("distributions")
    project = folder / "source"
    project.mkdir()
    for name, source in {**{name: source for name, (source, *_) in BROKEN.items()}, "clash": CLASH}.items():
        (project / f"{plugin(name)}.py").write_text(source)
    names = [plugin(name) for name in (*BROKEN, "clash")]
    points = "".join(f'{name} = "{name}"\n' for name in names)
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n\n'
        '[project]\nname = "ganlab-bad"\nversion = "0.7"\n\n'
        f"[project.entry-points.ganlab]\n{points}\n"
        '[tool.hatch.build.targets.wheel]\ninclude = ["*.py"]\n'
    )
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--disable-pip-version-check", "--target", folder / "installed", project], check=True)
    return folder


def plugin(name):
    return f"bad_{name.replace('-', '_')}"


@pytest.fixture(scope="module")
def ganlab(site):
    """Runs `ganlab` in a process with all of the plugins."""
    (site / "exp.gin").write_text(GIN)

    def ganlab(*arguments, **variables):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GANLAB_")}
        return subprocess.run(
            [sys.executable, "-m", "ganlab", *arguments],
            cwd=site,
            env={**inherited, "PYTHONPATH": str(site / "installed"), "TF_CPP_MIN_LOG_LEVEL": "3", **variables},
            capture_output=True,
            text=True,
        )

    return ganlab


def using(component):
    return ["run", "--gin", "exp.gin", "--dry-run", "--param", f"experiment.constraints=[@constraints.{component}()]"]


def test_unused_broken_plugins_do_not_affect_a_run(ganlab):
    alone, done = (ganlab("run", "--gin", "exp.gin", "--dry-run", **without) for without in ({"PYTHONPATH": ""}, {}))
    assert (alone.returncode, alone.stderr) == (0, "")
    assert (done.returncode, done.stdout, done.stderr) == (0, alone.stdout, "")


def test_run_with_a_component_of_broken_plugins_reports_the_reasons(ganlab):
    done = ganlab(*using("mine"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "Error: --param 'experiment.constraints=[@constraints.mine()]': Unknown component constrain"
    )
    for name, (_, status, reason) in BROKEN.items():
        assert f"{plugin(name)} ({status}: {reason})" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_broken_plugin_is_listed(ganlab):
    found = json.loads(ganlab("plugins", "--json").stdout)
    rows = {row["name"]: row for row in found["plugins"]}
    table = ganlab("plugins", COLUMNS="400").stdout.splitlines()
    for name, (_, status, reason) in BROKEN.items():
        row = rows[plugin(name)]
        assert (row["distribution"], row["version"], row["status"]) == ("ganlab-bad", "0.7", status)
        assert row["error"].strip().endswith(reason)
        (line,) = [line for line in table if f" {plugin(name)} " in line]
        assert reason in line
        assert line.split()[-1] == status
    assert found["clashes"] == [CLASHING]
    (component,) = [c for c in found["components"] if c["name"] == "gradient_penalty"]
    assert component["status"] == "clash"
    (line,) = [line for line in table if " gradient_penalty " in line]
    assert CLASHING in line
    assert line.split()[-1] == "clash"


def test_clash_stops_a_run_that_uses_the_component(ganlab):
    done = ganlab(*using("gradient_penalty"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: --param 'experiment.constraints=[@constraints.gradient_penalty()]': {CLASHING}\n"
    assert ganlab(*using("gradient_penalty"), "--no-plugin", "bad_clash").returncode == 0


@pytest.mark.slow
def test_experiment_trains_with_all_broken_plugins_installed(ganlab, site):
    done = ganlab("run", "--gin", "exp.gin", "--name", "first")
    assert done.returncode == 0, done.stderr
    assert "Completed at step 1 of 1" in done.stdout
    info = json.loads((site / "runs" / "exp" / "first" / "run.json").read_text())
    rows = {name: row["status"] for name, row in info["provenance"]["plugins"].items() if name.startswith("bad_")}
    assert rows == {**{plugin(name): status for name, (_, status, _) in BROKEN.items()}, "bad_clash": "loaded"}


def test_strict_mode_stops_the_run(ganlab):
    done = ganlab("run", "--gin", "exp.gin", "--dry-run", GANLAB_STRICT_PLUGINS="1")
    assert (done.returncode, done.stdout) == (2, "")
    assert CLASHING in done.stderr
