"""Claims hold or do not, tables are Markdown, and written reports can be read back."""

import json
import math

import numpy as np
import pytest
from reproductions.report import Claim, Report, Table


@pytest.mark.parametrize(
    ("figure", "relation", "limit", "holds"),
    [
        (2.0, "at least", 1.0, True),
        (1.0, "at least", 1.0, True),
        (0.5, "at least", 1.0, False),
        (0.5, "at most", 1.0, True),
        (1.0, "at most", 1.0, True),
        (2.0, "at most", 1.0, False),
        (math.nan, "at least", 1.0, False),
        (math.nan, "at most", 1.0, False),
        (math.inf, "at most", 1.0, False),
    ],
)
def test_a_claim(figure, relation, limit, holds):
    assert Claim("it is so", figure, relation, limit).holds is holds


def test_a_table_is_markdown():
    text = Table("Norms:", ["critic", "norm"], [["clipped", "1"], ["none", "10.5"]]).markdown()
    assert text == (
        "Norms:\n\n| critic  | norm |\n| ------- | ---- |\n| clipped | 1    |\n| none    | 10.5 |\n"
    )  # aligned, so that it can be read on a screen too


def test_one_claim_that_fails_fails_the_report(tmp_path):
    good, bad = Claim("good", np.float32(1.0), "at least", 0.5), Claim("bad", math.nan, "at most", 0.5)
    assert Report([], [good]).passed
    report = Report([Table("Something:", ["a"], [["1"]])], [good, bad], {"picture": b"png"})
    assert not report.passed

    report.write(tmp_path / "new" / "folder", {"reproduction": "some", "seconds": 3})

    found = json.loads((tmp_path / "new" / "folder" / "claims.json").read_text())
    assert (found["reproduction"], found["seconds"], found["passed"]) == ("some", 3, False)
    assert [claim["holds"] for claim in found["claims"]] == [True, False]
    assert [claim["figure"] for claim in found["claims"]] == [1.0, "nan"]
    text = (tmp_path / "new" / "folder" / "table.md").read_text()
    assert "Something:" in text
    assert "| bad   | nan      | at most 0.5  | **no** |" in text
    assert (tmp_path / "new" / "folder" / "picture.png").read_bytes() == b"png"
