"""Plugins as installed distributions: real metadata folders on the path, good and bad ones together."""

import json
import sys

import pytest
from click.testing import CliRunner
from command_lines import command

import ganlab
from ganlab.cli import cli
from ganlab.errors import PluginError
from ganlab.interfaces import hookspecs
from ganlab.plugins import manager as plugins

LOSS = "import ganlab\n\nclass {0}(ganlab.Loss):\n    '''{1}'''\n\n"
HOOK = "@ganlab.hookimpl\ndef ganlab_losses():\n    return {0}\n"
GOOD = LOSS.format("Good", "A good loss.\n\n    It is.") + HOOK.format("{'good': Good}")


@pytest.fixture
def install(tmp_path, monkeypatch, fresh_plugins):
    """Installs distributions: `install("dist", "1.2", module="source")`, one entry point for each module."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    # The first-party plugins are denied by name, because these tests concern only the manager.
    monkeypatch.delenv("GANLAB_PLUGINS", raising=False)
    monkeypatch.delenv("GANLAB_STRICT_PLUGINS", raising=False)
    made = []

    def install(distribution, version, /, entry_point=None, **modules):
        folder = tmp_path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        folder.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        points = "".join(f"{entry_point or name} = {name}\n" for name in modules)
        folder.joinpath("entry_points.txt").write_text(f"[ganlab]\n{points}")
        for name, source in modules.items():
            (tmp_path / f"{name}.py").write_text(source)
            made.append(name)

    yield install
    for name in made:
        sys.modules.pop(name, None)


@pytest.fixture
def discover(monkeypatch):
    """Discovers plugins without the first-party ones; returns the manager and a row for each plugin."""

    def discover(*, deny=(), local=None):
        import importlib.metadata

        ours = importlib.metadata.distribution("ganlab-tf").entry_points
        names = [point.name for point in ours if point.group == "ganlab"]
        found = plugins.use(plugins.discover(deny=[*names, *deny], local=local))
        return found, {row.name: row for row in found.rows if row.name not in names}

    return discover


def test_plugin_is_found_with_distribution_and_version(install, discover):
    install("ganlab-good", "1.2.3", good_plugin=GOOD)
    found, rows = discover()
    assert rows["good_plugin"] == plugins.Plugin("good_plugin", "ganlab-good", "1.2.3", "loaded")
    component = found.component("losses", "good")
    assert (component.summary, component.plugin.distribution) == ("A good loss.", "ganlab-good")
    assert isinstance(ganlab.component("losses", "good")(), ganlab.Loss)


BROKEN = {
    "broken import": ("import no_such_module_at_all\n", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
    "exit": ("raise SystemExit(3)\n", "SystemExit: 3"),
    "misspelt hook": (
        GOOD + "@ganlab.hookimpl\ndef ganlab_constraint():\n    return {}\n",
        "unknown hook 'ganlab_constraint'. Did you mean 'ganlab_constraints'?",
    ),
    "hook with an argument too many": (
        "import ganlab\n@ganlab.hookimpl\ndef ganlab_losses(extra):\n    return {}\n",
        "Argument(s) {'extra'} are declared in the hookimpl but can not be found in the hookspec",
    ),
    "wrong return type": (
        "import ganlab\n" + HOOK.format("['hinge']"),
        "ganlab_losses returned list; it must return a dict of name to factory",
    ),
    "bad name": (
        GOOD.replace("'good'", "'go-od'"),
        "ganlab_losses offers the name 'go-od'; a name must be a Python identifier",
    ),
    "no factory": (
        GOOD.replace(": Good}", ": 3}"),
        "ganlab_losses offers 'good' as 3; it must be a class or a function",
    ),
    "variadic": (
        "import ganlab\ndef make(*, a=1, **rest): ...\n" + HOOK.format("{'v': make}"),
        "losses.v takes **rest, which would accept any typo; name its parameters",
    ),
    "positional": (
        "import ganlab\ndef make(a, /): ...\n" + HOOK.format("{'v': make}"),
        "losses.v takes 'a' by position only; files set it by name",
    ),
    "raising hook": ("import ganlab\n" + HOOK.format("1 / 0"), "ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize(("source", "reason"), BROKEN.values(), ids=BROKEN)
def test_broken_plugin_is_a_row_and_does_not_affect_others(install, discover, source, reason):
    install("ganlab-bad", "0.1", a_bad_plugin=source)
    install("ganlab-good", "1.0", good_plugin=GOOD.replace("'good'", "'fine'"))
    found, rows = discover()
    assert rows["a_bad_plugin"].status == "broken"
    assert rows["a_bad_plugin"].reason == reason
    assert "Traceback" in rows["a_bad_plugin"].error
    assert rows["good_plugin"].status == "loaded"
    assert list(found.components) == [("losses", "fine")]  # and nothing of the broken one
    found.check()  # no error: the run does not use it
    with pytest.raises(PluginError) as caught:
        ganlab.component("losses", "wanted")
    assert f"a_bad_plugin (broken: {reason})" in str(caught.value)


def test_strict_mode_raises_on_a_broken_plugin(install, discover, monkeypatch):
    install("ganlab-bad", "0.1", a_bad_plugin="import no_such_module_at_all\n")
    found, _ = discover()
    monkeypatch.setenv("GANLAB_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError) as caught:
        found.check()
    assert str(caught.value) == (
        "Plugin 'a_bad_plugin' of ganlab-bad 0.1 is broken: ModuleNotFoundError: No module named "
        "'no_such_module_at_all'. Fix it, disable it with --no-plugin a_bad_plugin, or unset GANLAB_STRICT_PLUGINS."
    )
    monkeypatch.setenv("GANLAB_STRICT_PLUGINS", "0")
    found.check()


TWO = (
    "Two plugins offer losses.good: 'first' of ganlab-one 1.0 and 'second' of ganlab-two 2.0. "
    "Disable one of them: --no-plugin first or --no-plugin second. "
    "Or write losses.first.good or losses.second.good."
)


def test_clash_names_both_distributions_and_the_remedy(install, discover):
    install("ganlab-one", "1.0", first=GOOD)
    install("ganlab-two", "2.0", second=GOOD + "    # and\n" + HOOK.format("{'good': Good, 'other': Good}"))
    found, _ = discover()
    found.check()  # no error: no run uses it
    assert isinstance(ganlab.component("losses", "other")(), ganlab.Loss)
    with pytest.raises(PluginError) as caught:
        ganlab.component("losses", "good")
    assert str(caught.value) == TWO
    found, rows = discover(deny=["first"])
    assert found.clashes == {}
    assert rows["first"].status == "disabled"
    assert found.component("losses", "good").plugin.name == "second"


def test_clash_of_three_plugins(install, discover):
    for number, name in enumerate(["first", "second", "third"], start=1):
        install(f"ganlab-{name}", f"{number}.0", **{name: GOOD})
    found, _ = discover()
    assert list(found.clashes.values()) == [
        "Three plugins offer losses.good: 'first' of ganlab-first 1.0, 'second' of ganlab-second 2.0 and 'third' of "
        "ganlab-third 3.0. Disable all but one: --no-plugin first or --no-plugin second or --no-plugin third. "
        "Or write losses.first.good or losses.second.good or losses.third.good."
    ]


NEWER = (
    "written for plugin contract 4, where this ganlab has contract 3. Upgrade ganlab, or install the plugin's version "
    "for contract 3"
)
DECLARED = {
    "assigned": "GANLAB_CONTRACT = 4\n",
    "with a type": "GANLAB_CONTRACT: int = 4\n",
    "below what it needs": "from ganlab import NotYetThere\nGANLAB_CONTRACT = 4\n",
    "computed": "GANLAB_CONTRACT = int('4')\n",
}


@pytest.mark.parametrize("source", DECLARED.values(), ids=DECLARED)
def test_plugin_for_another_contract_is_incompatible(install, discover, source):
    install("ganlab-tomorrow", "9.0", a_late_plugin=source + GOOD)
    found, rows = discover()
    assert (rows["a_late_plugin"].status, rows["a_late_plugin"].reason) == ("incompatible", NEWER)
    assert found.components == {}
    assert ("a_late_plugin" in sys.modules) == ("int(" in source)  # executed only if its number is computed
    found.check()
    with pytest.raises(PluginError, match=r"a_late_plugin \(incompatible: written for plugin contract 4, where"):
        ganlab.component("losses", "good")
    with pytest.raises(PluginError, match=r"Plugin 'a_late_plugin' of ganlab-tomorrow 9\.0 is incompatible: written"):
        found.check(strict=True)


def test_matching_or_undeclared_contract_is_loaded(install, discover, monkeypatch):
    install("ganlab-now", "1.0", a_present_plugin=f"GANLAB_CONTRACT = {ganlab.CONTRACT}\n" + GOOD)
    install("ganlab-before", "1.0", a_first_plugin="GANLAB_CONTRACT = 1\n" + GOOD.replace("'good'", "'first'"))
    install("ganlab-silent", "1.0", a_silent_plugin=GOOD.replace("'good'", "'silent'"))
    _, rows = discover()
    assert {name: row.status for name, row in rows.items()} == {
        "a_present_plugin": "loaded",
        "a_first_plugin": "loaded",
        "a_silent_plugin": "loaded",
    }
    monkeypatch.setattr(hookspecs, "CONTRACT", 4)
    monkeypatch.setattr(hookspecs, "CONTRACTS", (4,))
    _, rows = discover()
    assert rows["a_present_plugin"].reason == (
        "written for plugin contract 3, where this ganlab has contract 4. Upgrade the plugin, or install the ganlab "
        "for contract 3"
    )
    assert rows["a_silent_plugin"].status == "loaded"


@pytest.mark.parametrize("value", ["'1'", "1.0", "True", "0", "(1, 2)"])
def test_invalid_contract_number_is_broken(install, discover, value):
    install("ganlab-odd", "1.0", an_odd_plugin=f"GANLAB_CONTRACT = {value}\n" + GOOD)
    _, rows = discover()
    assert (rows["an_odd_plugin"].status, rows["an_odd_plugin"].reason) == (
        "broken",
        f"GANLAB_CONTRACT = {value} must be a whole number of at least 1, such as 3",
    )


def test_plugin_file_for_another_contract_is_refused(tmp_path, discover):
    path = tmp_path / "mine.py"
    path.write_text("GANLAB_CONTRACT = 4\n" + GOOD)
    with pytest.raises(PluginError, match=r"mine\.py cannot be used: written for plugin contract 4"):
        ganlab.use_plugin_file(path)


def test_entry_points_without_metadata_are_loaded(install, discover, tmp_path):
    install("ganlab-half", "1.0", half_plugin=GOOD)
    (tmp_path / "ganlab_half-1.0.dist-info" / "METADATA").unlink()
    _, rows = discover()
    assert (rows["half_plugin"].status, rows["half_plugin"].distribution) == ("loaded", "unknown")


def test_duplicate_plugin_name_is_broken(install, discover):
    install("ganlab-one", "1.0", entry_point="twin", first=GOOD)
    install("ganlab-two", "2.0", entry_point="twin", second=GOOD.replace("'good'", "'other'"))
    found, _ = discover()
    (broken,) = [row for row in found.rows if row.status == "broken"]
    (loaded,) = [row for row in found.rows if row.status == "loaded"]
    assert broken.reason == (
        f"{loaded.distribution} {loaded.version} also has a plugin of this name; uninstall one of them"
    )


def test_allow_list_loads_only_the_named_plugins(install, discover, monkeypatch):
    install("ganlab-good", "1.0", good_plugin=GOOD)
    install("ganlab-bad", "1.0", a_bad_plugin="raise AssertionError('imported all the same')\n")
    monkeypatch.setenv("GANLAB_PLUGINS", " good_plugin ,")
    found, rows = discover()
    assert {name: row.status for name, row in rows.items()} == {"good_plugin": "loaded", "a_bad_plugin": "disabled"}
    assert "a_bad_plugin" not in sys.modules
    with pytest.raises(PluginError, match=r"Plugins not loaded: a_bad_plugin \(disabled\)"):
        found.component("losses", "wanted")


@pytest.mark.parametrize("by", ["deny", "allow"])
def test_unknown_plugin_name_is_an_error_in_either_list(install, discover, monkeypatch, by):
    install("ganlab-good", "1.0", good_plugin=GOOD)
    if by == "allow":
        monkeypatch.setenv("GANLAB_PLUGINS", "god_plugin")
    with pytest.raises(PluginError) as caught:
        discover(deny=["god_plugin"] if by == "deny" else [])
    who = {"deny": "--no-plugin", "allow": "The environment variable GANLAB_PLUGINS"}[by]
    assert str(caught.value) == (
        f"{who} names the plugin 'god_plugin', which is not there. Did you mean 'good_plugin'?"
    )


def test_known_plugins_are_listed_where_none_has_a_similar_name(install, discover, monkeypatch):
    install("ganlab-good", "1.0", good_plugin=GOOD)
    monkeypatch.setenv("GANLAB_PLUGINS", "zebra")
    with pytest.raises(PluginError, match=r"GANLAB_PLUGINS names the plugin 'zebra'.* Known plugins: .*good_plugin"):
        discover()


def test_local_file_is_a_plugin_without_packaging(install, discover, tmp_path):
    path = tmp_path / "ganlab_plugins.py"
    path.write_text(GOOD.replace("'good'", "'local'"))
    found, rows = discover(local=path)
    assert rows["ganlab_plugins"] == plugins.Plugin("ganlab_plugins", str(path), "", "loaded")
    assert found.component("losses", "local").factory().__class__.__module__ == "ganlab_plugins"
    _, rows = discover(local=path, deny=["ganlab_plugins"])
    assert rows["ganlab_plugins"].status == "disabled"
    path.write_text("import no_such_module_at_all\n")
    sys.modules.pop("ganlab_plugins")
    _, rows = discover(local=path)
    assert rows["ganlab_plugins"].status == "broken"
    assert "ganlab_plugins" not in sys.modules  # half a module must not be found later


def test_every_listener_of_a_hook_can_be_called(install, discover):
    note = "import ganlab\nheard = []\n@ganlab.hookimpl\ndef ganlab_run_end(status):\n    heard.append(status)\n"
    install("ganlab-one", "1.0", first_listener=note)
    install("ganlab-two", "1.0", second_listener=note)
    found, _ = discover()
    calls = dict(found.calls("ganlab_run_end"))
    assert sorted(calls) == ["first_listener", "second_listener"]
    for call in calls.values():
        call(run=None, status="completed")
    assert [sys.modules[name].heard for name in ("first_listener", "second_listener")] == [["completed"]] * 2


def test_misspelt_names_and_kinds_get_suggestions(install, discover):
    install("ganlab-good", "1.0", good_plugin=GOOD)
    found, _ = discover()
    with pytest.raises(
        PluginError, match=r"Unknown component losses\.goood\. Did you mean 'losses\.good'\? Known losses: good\."
    ):
        found.component("losses", "goood")
    with pytest.raises(PluginError, match=r"Unknown kind of component 'loses'\. Did you mean 'losses'\?"):
        found.component("loses", "good")
    with pytest.raises(PluginError, match=r"Unknown component datasets\.good\. Did you mean 'losses\.good'\?"):
        found.component("datasets", "good")


# Clashes with a component of ganlab that the included file names, and that the experiment need not use.
CLASH = (
    "import ganlab\n@ganlab.hookimpl\ndef ganlab_constraints():\n    return {'gradient_penalty': ganlab.Constraint}\n"
)
CLASHING = (
    "Two plugins offer constraints.gradient_penalty: 'bad_clash' of ganlab-bad 0.7 and 'ganlab_constraints' of "
    f"ganlab-tf {ganlab.__version__}. Disable one of them: --no-plugin bad_clash or --no-plugin ganlab_constraints. "
    "Or write constraints.bad_clash.gradient_penalty or constraints.ganlab_constraints.gradient_penalty."
)
# By plugin: its source, its status and the reason.
ALL_BROKEN = {f"bad_{n}": (source, "broken", reason) for n, (source, reason) in enumerate(BROKEN.values())}
ALL_BROKEN["bad_tomorrow"] = DECLARED["below what it needs"] + GOOD, "incompatible", NEWER


def install_broken(install):
    """Installs all of them in one distribution, beside the first-party plugins."""
    install("ganlab-bad", "0.7", bad_clash=CLASH, **{name: source for name, (source, *_) in ALL_BROKEN.items()})


def dry_run(constraint, *more):
    settings = ["--param", f"experiment.constraints=[@constraints.{constraint}()]", *more]
    return CliRunner().invoke(cli, ["run", "--gin", "eight_gaussians", "--dry-run", *settings])


def test_unused_broken_plugins_do_not_affect_a_command(install):
    with plugins.using():
        alone = dry_run("spectral_norm")
    install_broken(install)
    done = dry_run("spectral_norm")
    assert (alone.exit_code, alone.stderr) == (0, "")
    assert (done.exit_code, done.stdout, done.stderr) == (0, alone.stdout, "")


def test_command_that_needs_a_broken_plugin_reports_the_reasons(install):
    install_broken(install)
    message = command("run", "--gin", "eight_gaussians", "--param", "experiment.loss=@losses.good()", code=2)
    assert message.startswith("Error: --param 'experiment.loss=@losses.good()': Unknown component losses.good.")
    for name, (_, status, reason) in ALL_BROKEN.items():
        assert f"{name} ({status}: {reason})" in message


def test_every_broken_plugin_is_listed(install):
    install_broken(install)
    found = json.loads(command("plugins", "--json"))
    rows = {row["name"]: row for row in found["plugins"]}
    page = command("plugins").splitlines()
    for name, (_, status, reason) in ALL_BROKEN.items():
        assert (rows[name]["distribution"], rows[name]["version"], rows[name]["status"]) == (
            "ganlab-bad",
            "0.7",
            status,
        )
        assert rows[name]["error"].strip().endswith(reason)
        (line,) = [line for line in page if f" {name} " in line]
        assert line.split(maxsplit=1)[1] == f"{status}: {reason} (ganlab-bad 0.7)"
    assert found["clashes"] == [CLASHING]
    (component,) = [c for c in found["components"] if c["name"] == "gradient_penalty"]
    assert component["status"] == "clash"
    (line,) = [line for line in page if " gradient_penalty " in line]
    assert CLASHING in line


def test_clash_stops_a_command_that_uses_the_component_and_in_strict_mode_any(install, monkeypatch):
    install_broken(install)
    done = dry_run("gradient_penalty")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"Error: --param 'experiment.constraints=[@constraints.gradient_penalty()]': {CLASHING}\n"
    assert dry_run("gradient_penalty", "--no-plugin", "bad_clash").exit_code == 0
    monkeypatch.setenv("GANLAB_STRICT_PLUGINS", "1")
    with plugins.using():
        strict = dry_run("spectral_norm")
    assert (strict.exit_code, strict.stdout) == (2, "")
    assert CLASHING in strict.stderr


@pytest.mark.slow
def test_experiment_trains_with_all_broken_plugins_installed(install, tmp_path):
    install_broken(install)
    small = ("experiment.steps=1", "experiment.constraints=[@constraints.spectral_norm()]", "architectures.mlp.width=4")
    params = [word for setting in small for word in ("--param", setting)]
    said = command("run", "--gin", "eight_gaussians", "--runs", tmp_path / "runs", "--name", "first", *params)
    assert "Completed at step 1 of 1" in said
    info = json.loads((tmp_path / "runs" / "eight_gaussians" / "first" / "run.json").read_text())
    rows = {name: row["status"] for name, row in info["provenance"]["plugins"].items() if name.startswith("bad_")}
    assert rows == {**{name: status for name, (_, status, _) in ALL_BROKEN.items()}, "bad_clash": "loaded"}


KNOWN_AS = """
import ganlab
GANLAB_KNOWN_AS = {"losses.mine": ["Other-Name", 3], "losses.gone": ["gone_too"], "losses.bad": "text", 7: None}
class Mine(ganlab.Loss): ...
@ganlab.hookimpl
def ganlab_losses(): return {"mine": Mine}
"""


def test_plugins_declare_the_names_by_which_people_know_their_components(install):
    install("known", "1.0", known_one=KNOWN_AS)
    found = plugins.discover()
    with pytest.raises(PluginError, match=r"Unknown component constraints\.other_name\. Did you mean 'losses\.mine'\?"):
        found.component("constraints", "other_name")
    assert found.known_as("other-NAME") == found.known_as("3") == ["losses.mine"]
    assert found.known_as("gone_too") == found.known_as("t") == []
    assert found.known_as("fid") == ["evaluators.frechet_distance"]
    assert found.known_as("datasets.cifar10") == ["datasets.keras"]
    assert found.known_as("losses.wgan_gp") == ["losses.wasserstein"]
    declared = [each for selectors in found._known_as.values() for each in selectors if each != "losses.gone"]
    assert not [each for each in declared if tuple(each.split(".")) not in found.components]
