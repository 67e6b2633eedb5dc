"""The hooks under the name that they had first; `ganlab.interfaces.hookspecs` holds them."""

from ganlab.interfaces.hookspecs import *  # noqa: F403
