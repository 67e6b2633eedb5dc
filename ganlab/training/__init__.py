"""Training: the replica context, the step, the loop, the state and its checkpoints."""

from ganlab.lazy import require

require("tensorflow")  # the first module that needs it says which extra to install

from ganlab.training.reading import load_generator  # noqa: E402
from ganlab.training.session import train  # noqa: E402

__all__ = ["load_generator", "train"]
