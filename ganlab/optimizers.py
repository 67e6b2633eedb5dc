"""The optimizers of the plugins in use, by name."""

from typing import TYPE_CHECKING

from ganlab.plugins.by_name import by_name

if TYPE_CHECKING:
    from ganlab_builtin.optimizers import *  # noqa: F403

__getattr__, __dir__ = by_name("optimizers")
