"""The generated package of every kind: installed, tested and used in training, in an environment of their own."""

import json

import pytest
from ganlab_scaffold import OTHERS, TEMPLATES, new_plugin

pytestmark = pytest.mark.slow

# `ganlab plugins check` applies the conformance classes that the packages' own tests apply: it is run for the kinds
# with tests of another sort, and for one of the others.
CHECKED = ["evaluator", *OTHERS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="module")
def packages(folder):
    return {kind: new_plugin(f"ganlab-soft-{kind}", kind, folder) for kind in (*TEMPLATES, *OTHERS)}


@pytest.fixture(scope="module")
def environment(new_environment, folder, packages):
    """An environment with all of them."""
    environment = new_environment(folder)
    environment.install(*(made.folder for made in packages.values()))
    return environment


@pytest.fixture(scope="module")
def outputs(environment, packages):
    """What the packages' tests, their trainings and `ganlab plugins check` print, by kind."""
    commands = {("test", kind): ["pytest", "-q", "-p", "no:cacheprovider", packages[kind].folder] for kind in packages}
    for kind in TEMPLATES:
        commands["train", kind] = ["ganlab", "run", "--gin", packages[kind].experiment, "--name", "first"]
    for kind in CHECKED:
        commands["check", kind] = ["ganlab", "plugins", "check", f"ganlab_soft_{kind}", "--json"]
    return dict(zip(commands, environment.forked(*commands.values()), strict=True))


def test_generated_packages_are_listed(environment):
    listed = json.loads(environment("-m", "ganlab", "plugins", "--json"))["components"]
    for kind, components in TEMPLATES.items():
        (component,) = [c for c in listed if c["plugin"] == f"ganlab_soft_{kind}"]
        assert (component["kind"], component["name"]) == (components, f"soft_{kind}")
        assert (component["distribution"], component["status"]) == (f"ganlab-soft-{kind}", "loaded")


@pytest.mark.parametrize("kind", [*TEMPLATES, *OTHERS])
def test_generated_package_passes_its_tests(outputs, kind):
    summary = outputs["test", kind].strip().splitlines()[-1]
    assert " passed" in summary
    assert "failed" not in summary


@pytest.mark.parametrize("kind", TEMPLATES)
def test_generated_package_trains(outputs, packages, folder, kind):
    assert "Completed at step 200 of 200" in outputs["train", kind]
    run = folder / "runs" / f"soft_{kind}" / "first"
    provenance = json.loads((run / "run.json").read_text())["provenance"]
    assert provenance["plugins"][f"ganlab_soft_{kind}"]["version"] == "0.1.0"
    assert packages[kind].selector in (run / "operative.gin").read_text()


@pytest.mark.parametrize("kind", CHECKED)
def test_generated_package_passes_plugins_check(outputs, kind):
    report = json.loads(outputs["check", kind])
    assert report["passed"]
    assert [row["status"] for row in report["components"]] == ["passed"]
