"""docs/benchmark.md: every key of a suite and every task of the shipped ones is on it."""

import re
from pathlib import Path

import pytest
from ganlab_benchmark import suite_schema
from ganlab_benchmark.suite import find_suite, read_suite
from ganlab_benchmark.suite_schema import KINDS
from pages import ROOT

PAGE = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")


def test_every_key_and_kind_is_mentioned():
    source = Path(suite_schema.__file__).read_text(encoding="utf-8")
    keys = set(re.findall(r"""[{ ]"(\w+)": [a-zA-Z]""", source)) - {"tasks"}
    assert {"experiment", "scale", "report", "figures", "tune"} <= keys
    assert sorted(key for key in keys | set(KINDS) if f"`{key}`" not in PAGE) == []


@pytest.mark.parametrize("name", ["quick", "full", "mnist"])
def test_every_task_of_a_shipped_suite_is_described(name):
    for task in read_suite(find_suite(name)).tasks:
        assert f"| `{task}` |" in PAGE
