"""The roles under the name that they had first; `ganlab.interfaces` holds them."""

from ganlab.interfaces import *  # noqa: F403
from ganlab.interfaces import __all__ as __all__
