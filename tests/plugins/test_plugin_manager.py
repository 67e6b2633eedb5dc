"""Plugins as installed distributions: real metadata folders on the path, good and bad ones together."""

import sys

import pytest

import ganlab
from ganlab import plugins
from ganlab.errors import PluginError

LOSS = "import ganlab\n\nclass {0}(ganlab.Loss):\n    '''{1}'''\n\n"
HOOK = "@ganlab.hookimpl\ndef ganlab_losses():\n    return {0}\n"
GOOD = LOSS.format("Good", "A good loss.\n\n    It is.") + HOOK.format("{'good': Good}")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs distributions: `install("dist", "1.2", module="source")`, one entry point for each module."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(plugins, "_current", None)
    # The first-party plugins are denied by name: these tests are of the manager alone.
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
    """Finds plugins, the first-party ones denied; gives the manager and a row for each of the others."""

    def discover(*, deny=(), local=None):
        import importlib.metadata

        ours = importlib.metadata.distribution("ganlab").entry_points
        names = [point.name for point in ours if point.group == "ganlab"]
        found = plugins.use(plugins.discover(deny=[*names, *deny], local=local))
        return found, {row.name: row for row in found.rows if row.name not in names}

    return discover


def test_a_good_plugin_is_found_with_its_distribution_and_version(install, discover):
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
def test_a_broken_plugin_is_a_row_and_takes_nothing_down(install, discover, source, reason):
    install("ganlab-bad", "0.1", a_bad_plugin=source)
    install("ganlab-good", "1.0", good_plugin=GOOD.replace("'good'", "'fine'"))
    found, rows = discover()
    assert rows["a_bad_plugin"].status == "broken"
    assert rows["a_bad_plugin"].reason == reason
    assert "Traceback" in rows["a_bad_plugin"].error
    assert rows["good_plugin"].status == "loaded"
    assert list(found.components) == [("losses", "fine")]  # nothing of the broken one either
    found.check()  # no error: the run does not use it
    with pytest.raises(PluginError) as caught:
        ganlab.component("losses", "wanted")
    assert f"a_bad_plugin (broken: {reason})" in str(caught.value)


def test_strict_makes_a_broken_plugin_an_error(install, discover, monkeypatch):
    install("ganlab-bad", "0.1", a_bad_plugin="import no_such_module_at_all\n")
    found, _ = discover()
    monkeypatch.setenv("GANLAB_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError) as caught:
        found.check()
    assert str(caught.value) == (
        "Plugin 'a_bad_plugin' of ganlab-bad 0.1 is broken: ModuleNotFoundError: No module named "
        "'no_such_module_at_all'. Mend it, disable it with --no-plugin a_bad_plugin, or unset GANLAB_STRICT_PLUGINS."
    )
    monkeypatch.setenv("GANLAB_STRICT_PLUGINS", "0")
    found.check()


def test_a_clash_names_both_distributions_and_the_way_out(install, discover):
    install("ganlab-one", "1.0", first=GOOD)
    install("ganlab-two", "2.0", second=GOOD)
    found, _ = discover()
    with pytest.raises(PluginError) as caught:
        found.check()
    assert str(caught.value) == (
        "Two plugins offer losses.good: 'first' of ganlab-one 1.0 and 'second' of ganlab-two 2.0. "
        "Disable one of them: --no-plugin first or --no-plugin second."
    )
    found, rows = discover(deny=["first"])
    found.check()
    assert rows["first"].status == "disabled"
    assert found.component("losses", "good").plugin.name == "second"


def test_two_distributions_with_plugins_of_one_name(install, discover):
    install("ganlab-one", "1.0", entry_point="twin", first=GOOD)
    install("ganlab-two", "2.0", entry_point="twin", second=GOOD.replace("'good'", "'other'"))
    found, _ = discover()
    (broken,) = [row for row in found.rows if row.status == "broken"]
    (loaded,) = [row for row in found.rows if row.status == "loaded"]
    assert broken.reason == (
        f"{loaded.distribution} {loaded.version} brings a plugin of this name too; uninstall one of them"
    )


def test_the_allow_list_loads_only_what_it_names(install, discover, monkeypatch):
    install("ganlab-good", "1.0", good_plugin=GOOD)
    install("ganlab-bad", "1.0", a_bad_plugin="raise AssertionError('imported all the same')\n")
    monkeypatch.setenv("GANLAB_PLUGINS", " good_plugin ,")
    found, rows = discover()
    assert {name: row.status for name, row in rows.items()} == {"good_plugin": "loaded", "a_bad_plugin": "disabled"}
    assert "a_bad_plugin" not in sys.modules
    with pytest.raises(PluginError, match=r"Plugins not loaded: a_bad_plugin \(disabled\)"):
        found.component("losses", "wanted")


@pytest.mark.parametrize("by", ["deny", "allow"])
def test_a_name_that_is_no_plugin_is_an_error_in_either_list(install, discover, monkeypatch, by):
    install("ganlab-good", "1.0", good_plugin=GOOD)
    if by == "allow":
        monkeypatch.setenv("GANLAB_PLUGINS", "god_plugin")
    with pytest.raises(PluginError) as caught:
        discover(deny=["god_plugin"] if by == "deny" else [])
    assert str(caught.value) == (
        "There is no plugin 'god_plugin' to allow or deny. Did you mean 'good_plugin'? See 'ganlab plugins'."
    )


def test_a_local_file_is_a_plugin_with_no_packaging(install, discover, tmp_path):
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


def test_notifications_reach_every_plugin_even_past_one_that_fails(install, discover):
    note = "import ganlab\nheard = []\n@ganlab.hookimpl\ndef ganlab_run_end(status):\n    heard.append(status)\n"
    install("ganlab-one", "1.0", first_listener=note + "    1 / 0\n")
    install("ganlab-two", "1.0", second_listener=note)
    found, _ = discover()
    assert found.notify("ganlab_run_end", run=None, status="completed") == [
        "Plugin 'first_listener' failed in ganlab_run_end: ZeroDivisionError('division by zero')"
    ]
    assert [sys.modules[name].heard for name in ("first_listener", "second_listener")] == [["completed"]] * 2
    assert found.listens("ganlab_run_end")
    assert not found.listens("ganlab_metrics")


def test_names_and_kinds_that_are_nearly_right(install, discover):
    install("ganlab-good", "1.0", good_plugin=GOOD)
    found, _ = discover()
    with pytest.raises(
        PluginError, match=r"There is no losses\.goood\. Did you mean 'losses\.good'\? Known losses: good\."
    ):
        found.component("losses", "goood")
    with pytest.raises(PluginError, match=r"There is no kind of component 'loses'\. Did you mean 'losses'\?"):
        found.component("loses", "good")
    with pytest.raises(PluginError, match=r"There is no datasets\.good\. Did you mean 'losses\.good'\?"):
        found.component("datasets", "good")
