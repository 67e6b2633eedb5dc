"""What every test may use."""

import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.fixture(scope="session")
def cpus(ganlab_cpus):
    """The names of four logical CPUs, to make replicas on, by the pytest plugin that ganlab ships."""
    return ganlab_cpus


@pytest.fixture
def precision():
    """Sets the dtype policy of layers for one test: `precision("mixed_bfloat16")`."""
    import keras

    before = keras.config.dtype_policy()
    yield keras.config.set_dtype_policy
    keras.config.set_dtype_policy(before)
