"""One TensorFlow runtime serves the whole process, so what it starts with is decided here, for every test."""

import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

CPUS = 4


def pytest_collection_finish(session):
    # A CPU is split before TensorFlow's first use or never, and any test may be the first to use it: so here, and only
    # if a selected test asks for the parts, since importing TensorFlow takes seconds.
    if session.config.option.collectonly or not any("cpus" in getattr(i, "fixturenames", ()) for i in session.items):
        return
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * CPUS)


@pytest.fixture(scope="session")
def cpus():
    """The names of four logical CPUs, to make replicas on."""
    import tensorflow as tf

    names = [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices("CPU")]
    assert len(names) == CPUS, "TensorFlow was used while tests were collected: move that into a test or a fixture"
    return names


@pytest.fixture
def precision():
    """Sets the dtype policy of layers for one test: `precision("mixed_bfloat16")`."""
    import keras

    before = keras.config.dtype_policy()
    yield keras.config.set_dtype_policy
    keras.config.set_dtype_policy(before)
