"""`ganlab plan`."""

import pytest
from ganlab_verify.tpu import environment


@pytest.mark.parametrize("given", [["h100,v5x:2x2"], ["v5x:2x2", "--topology", "h100"]], ids=" ".join)
def test_an_unknown_topology_is_named_with_the_known_ones(mistake, given):
    message = mistake("plan", "--gin", "swiss_roll", "--topology", *given)
    assert [words for words in ("Unknown topology 'v5x:2x2'", "v5e", "rtx4090") if words not in message] == []


def test_a_tpu_needs_its_compiler(mistake, monkeypatch):
    monkeypatch.setattr(environment, "installed", lambda: False)
    message = mistake("plan", "--gin", "swiss_roll", "--topology", "v5e:2x2")
    assert "which is not installed. Install it once with --install" in message


def test_a_mistake_in_the_experiment_is_one_message(mistake, here, minimal):
    (here / "exp.gin").write_text(minimal)
    message = mistake("plan", "--gin", "exp.gin", "--topology", "cpu", "--param", "experiment.stepz=2")
    assert "Did you mean 'steps'?" in message
