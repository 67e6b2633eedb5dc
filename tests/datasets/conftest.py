import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture
def through_pipeline():
    """Reads a dataset as training does, in a tf.data map over batches of numbers: `run(dataset, numbers, batch)`."""

    def run(dataset, numbers, batch, seed=0):
        data = tf.data.Dataset.from_tensor_slices(np.asarray(numbers, np.int64)).batch(batch, drop_remainder=True)
        data = data.map(lambda n: dataset.examples(n, seed))
        assert data.element_spec.shape == (batch, *dataset.sample_shape)
        assert data.element_spec.dtype == tf.float32
        return np.concatenate(list(data.as_numpy_iterator()))

    return run
