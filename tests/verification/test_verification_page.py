"""The table in docs/verification.md lists the shipped experiments."""

import re
from pathlib import Path

from ganlab_verify import CHECKS

from ganlab.config import shipped_gin_files

# gin/paper differs in settings that the checks do not depend on; of gin/methods the page has a sentence.
ALL = [
    p.stem
    for p in shipped_gin_files()
    if p.parent.name not in ("base", "benchmark", "methods", "paper", "published", "stacked_mnist", "mnist")
]
PAGE = (Path(__file__).parents[2] / "docs" / "verification.md").read_text(encoding="utf-8")


def test_every_shipped_experiment_is_in_the_table_and_has_passed():
    # As `ganlab verify --all` prints it; run it again for a new experiment.
    (table,) = re.findall(r"^```\n(experiment .*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    head, *lines = table.splitlines()
    assert head.split() == ["experiment", *CHECKS]
    assert [line.split()[0] for line in lines] == ALL
    for line in lines:
        cells = re.findall(r"(\S+) < (\S+)|(passed|refused|\d\.\de-\d\d)", line)
        assert len(cells) == len(CHECKS), line
        assert all(word or float(figure) <= float(limit) for figure, limit, word in cells), line
