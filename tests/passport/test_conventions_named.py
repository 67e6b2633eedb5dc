"""Penalties written in PyTorch, JAX and Keras: wrong ones are named by their convention, right ones pass.

The programs are those of docs/passport.md with another penalty in the place of theirs.
"""

import contextlib
import functools
import io
import re
import sys
import tomllib
from pathlib import Path

import pytest
from ganlab_passport import checking, passport, subjects, tensors
from ganlab_verify import maker

from ganlab.commands import plugins

PAGE = (Path(__file__).parents[2] / "docs" / "passport.md").read_text()
PROGRAMS = dict(re.findall(r"```python passport_(\w+)\.py\n(.*?)```", PAGE, re.S))
TABLE = tomllib.loads((Path(__file__).parent / "penalties.toml").read_text())
CASES = ("vectors-3", "images-3", "labels-3", "replicas-6", "flat-3")


@functools.cache
def made(name):
    component = plugins.discover().component("constraints", name)
    subject = subjects.Subject(f"constraints.{name}", maker(component, {}), ())
    return passport.make(subject, [case for case in subject.cases() if case.name in CASES])


def verdict(framework, name, parts, monkeypatch):
    """The verdict on a framework's program with a penalty of these parts, run in this process."""
    pytest.importorskip(framework, reason=f"{framework} is not installed: its programs are not checked")
    own = TABLE["frameworks"][framework]
    text = own["body"].format(**{"x": TABLE["between"], "cost": TABLE["cost"], **own, **parts})
    text = text.replace("{mean}", own["mean"]).replace("{relu}", own["relu"])
    program, output = re.sub(r"def penalty\(.*?\n\n\n", lambda _: text, PROGRAMS[framework], flags=re.S), io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO(made(name).given(".json").decode()))
    with contextlib.redirect_stdout(output):
        exec(compile(program, f"passport_{framework}.py", "exec"), {"__name__": "passport"})
    return checking.check(made(name), tensors.decode(output.getvalue().encode(), framework)[0])


@pytest.mark.slow
@pytest.mark.parametrize("wrong", TABLE["wrong"], ids=lambda wrong: f"{wrong['is']}: {wrong['named']}")
def test_a_wrong_penalty_is_named(wrong, monkeypatch):
    found = verdict(*wrong["is"].split(), wrong, monkeypatch)
    assert list(found.conventions) == [wrong["named"]]
    assert found.status == ("other" if "epsilon weighs" in wrong["named"] else "failed")


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE["right"])
@pytest.mark.parametrize("framework", TABLE["frameworks"])
def test_a_right_penalty_passes(framework, name, monkeypatch):
    found = verdict(framework, name, TABLE["right"][name], monkeypatch)
    assert (found.status, list(found.conventions), list(found.unanswered)) == ("passed", [], [])
    assert found.error < 1e-5


def test_the_programs_of_the_page_are_short():
    assert {name: len(text.splitlines()) <= 40 for name, text in PROGRAMS.items()} == dict.fromkeys(
        TABLE["frameworks"], True
    )
