"""`--profile`: a trace of some iterations, and the same rows as without it."""

import re

import pytest
from small import small

import ganlab

pytestmark = pytest.mark.usefixtures("cpus")


def rows(run):
    return [(record.step, record.tag, record.reduced, record.replicas) for record in run.metrics()]


@pytest.fixture(scope="module")
def plain(cpus, tmp_path_factory):
    return ganlab.train(small(2, steps=8), tmp_path_factory.mktemp("plain") / "run")


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["3..5", "0..2", "6..90"])
def test_a_trace_is_written_and_changes_nothing(plain, tmp_path, wanted, capsys):
    run = ganlab.train(small(2, steps=8), tmp_path / "run", profile=wanted, console=True)
    traces = list((run.path / "plugins" / "profile").rglob("*.xplane.pb"))
    assert len(traces) == 1
    assert traces[0].stat().st_size > 1000
    assert rows(run) == rows(plain)
    assert "Profile: " in "".join(capsys.readouterr())


@pytest.mark.slow
def test_a_span_that_training_does_not_reach_is_said(plain, tmp_path, capsys):
    run = ganlab.train(small(2, steps=8), tmp_path / "run", profile="8..9", console=True)
    assert not (run.path / "plugins").exists()
    said = re.sub(r"\s+", " ", "".join(capsys.readouterr()))
    assert "No profile of 8..9: this training is from step 0 to step 8." in said


@pytest.mark.parametrize("text", ["20", "25..20", "5..5", "a..b", "-1..4", "1..2..3", "1..99999999999"])
def test_other_texts_are_refused(text, tmp_path):
    with pytest.raises(ganlab.ConfigError, match="must be two steps, the first below the second"):
        ganlab.train(small(2, steps=8), tmp_path / "run", profile=text)
    assert not (tmp_path / "run").exists()
