"""The type of the run that plugins receive: `ganlab.Run`, not imported here because it builds on these interfaces."""

from typing import Any, TypeAlias

Run: TypeAlias = Any
