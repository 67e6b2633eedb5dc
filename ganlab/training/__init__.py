"""Training: the replica context, the step, the loop, the state and its checkpoints."""

from ganlab.lazy import require

# The first module that needs them says which extra to install, or that Keras is set to another backend.
require("tensorflow")
require("keras")

from ganlab.training.loading import evaluate, load_generator  # noqa: E402

__all__ = ["evaluate", "load_generator"]
