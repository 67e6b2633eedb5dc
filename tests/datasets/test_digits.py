import numpy as np
import pytest
from ganlab_builtin.datasets import Digits
from given import labels
from sklearn.datasets import load_digits

import ganlab

LEVELS, LABELS = load_digits(return_X_y=True)


def test_every_digit_comes_once_with_levels_0_to_16_as_minus_1_to_1_and_its_label(through_pipeline):
    digits = Digits()
    assert (digits.size, digits.sample_shape, digits.classes) == (1797, (8, 8, 1), 10)
    images = through_pipeline(digits, range(1797), batch=599)
    # All levels are whole eighths of the half range, which float32 holds exactly.
    np.testing.assert_array_equal(images.reshape(1797, 64), (LEVELS - 8) / 8)
    assert (images.min(), images.max()) == (-1.0, 1.0)
    np.testing.assert_array_equal(labels(digits, range(1797)), LABELS)
    np.testing.assert_array_equal(labels(digits, [1796, 0]), LABELS[[1796, 0]])


def test_labels_keep_their_classes_in_the_order_of_the_whole_set(through_pipeline):
    digits, kept = Digits(labels=[7, 0]), np.isin(LABELS, [0, 7])
    assert (digits.size, digits.classes) == (178 + 179, 10)
    images = through_pipeline(digits, range(350), batch=350)
    np.testing.assert_array_equal(images.reshape(350, 64), (LEVELS[kept][:350] - 8) / 8)
    np.testing.assert_array_equal(labels(digits, range(357)), LABELS[kept])


@pytest.mark.parametrize("labels", [[], [10], [-1, 2], [1.0], ["3"], [True]])
def test_labels_that_are_not_digits_are_refused(labels):
    with pytest.raises(ganlab.ConfigError, match=r"datasets\.digits\.labels = \[.*must be a list of digits 0 to 9"):
        Digits(labels=labels)
