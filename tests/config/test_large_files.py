"""Experiment files that take long to parse are refused, whatever they repeat."""

import time

import pytest

from ganlab import config
from ganlab.errors import ConfigError

SIZE = 1 << 20
REPEATED = {
    "values": ("experiment.evaluators = [", "1,", "]"),
    "strings": ("experiment.dataset = ", "''", ""),
    "strings on lines": ("experiment.evaluators = [", '"a"\n', "]"),
    "lines": ("", "experiment.steps = 3\n", ""),
    "names": ("", "a.", "b = 1"),
    "scopes": ("", "a/", "b.c = 1"),
    "digits": ("experiment.steps = ", "9", ""),
    "spaces": ("experiment.steps", " ", "= 3"),
    "blank lines": ("", "\n", "x"),
    "comments": ("", "#' ", ""),
    "references": ("experiment.constraints = [", "@constraints.r1(), ", "]"),
    "brackets": ("experiment.steps = ", "(", ""),
    "signs": ("experiment.steps = ", "-", "1"),
    "includes": ("", "include 'a.gin'\n", ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", REPEATED)
@pytest.mark.parametrize("size", [SIZE, 99_000])
def test_any_file_is_read_or_refused_within_seconds(tmp_path, kind, size):
    begin, repeated, end = REPEATED[kind]
    (tmp_path / "a.gin").write_text("")
    (tmp_path / "x.gin").write_text(begin + repeated * ((size - len(begin) - len(end)) // len(repeated)) + end)
    began = time.process_time()
    with pytest.raises(ConfigError):
        config.load([tmp_path / "x.gin"])
    assert time.process_time() - began < 8
