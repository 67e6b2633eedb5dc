"""The evaluators of the plugins in use, by name."""

from ganlab.plugins.by_name import by_name

__getattr__, __dir__ = by_name("evaluators")
