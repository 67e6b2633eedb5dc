"""Training: the replica context, the step, the loop, the state and its checkpoints."""

from ganlab.lazy import require

# Fails here, with the name of the extra to install, if they are missing or Keras is set to another backend.
require("tensorflow")
require("keras")

from ganlab.training.loading import evaluate, load_generator, load_network  # noqa: E402

__all__ = ["evaluate", "load_generator", "load_network"]
