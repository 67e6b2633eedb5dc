"""The gradient penalty at fake examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import ganlab
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.r1 import R1


class R2(R1):
    """Penalizes any slope of the critic at fake examples.

    Mescheder, Geiger and Nowozin, "Which training methods for GANs do actually converge?" (2018), section 4.1, the
    regularizer R2: `gamma / 2 * ||grad critic(x)||^2` at fake examples x.

    Logs `slope`, the mean at fake examples.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "slope": (
            "The mean norm of the critic's gradient at fake examples. The penalty pulls it to 0: what counts is "
            "that it does not grow."
        ),
    }

    def points(self, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The fake examples."""
        return batch.fake
