"""The check `replicas` compares the inputs of replicas by a projection."""

from pathlib import Path

import pytest
from ganlab_verify import Source
from ganlab_verify.replicas import check

PLUGIN = Path(__file__).parent / "checked_plugin.py"

pytestmark = pytest.mark.usefixtures("own_plugins", "cpus")


def test_one_hot_examples_differ_although_their_means_are_equal(experiments):
    gin, small = experiments("wgan")
    source = Source((gin,), (*small, "experiment.dataset=@datasets.one_hot()"), plugin_file=str(PLUGIN))
    row = check(source, replicas=[2], iterations=1, optimizers="sgd")
    assert row.status == "passed", row.detail
