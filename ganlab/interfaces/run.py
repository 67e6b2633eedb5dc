"""What plugins are handed as a run: a `ganlab.Run`, which is built on these interfaces and so is not imported here."""

from typing import Any, TypeAlias

Run: TypeAlias = Any
