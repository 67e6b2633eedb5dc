"""The names of ganlab's own commands, in the order of `ganlab --help`; no plugin's command can have them."""

COMMAND_NAMES = (
    "run",
    "runs",
    "plugins",
    "config",
    "doctor",
    "completion",
)
