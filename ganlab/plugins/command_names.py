"""The names of ganlab's own commands, in the order of `ganlab --help`; no plugin's command can have them."""

COMMAND_NAMES = (
    "run",
    "evaluate",
    "certify",
    "runs",
    "plugins",
    "config",
    "compare",
    "doctor",
    "completion",
)

# The commands that `ganlab --help` lists first, whether ganlab's own or those of an application that comes with it.
LISTED_FIRST = (
    "run",
    "sweep",
    "evaluate",
    "certify",
    "replay",
    "fork",
    "bisect",
    "sample",
    "export",
)
