"""What a command of the command line needs: messages, options, tables on a terminal. Does not import TensorFlow."""

from ganlab.cli.messages import say
from ganlab.cli.plugin_commands import command_names
from ganlab.support.signals import handling

__all__ = [
    "command_names",
    "handling",
    "say",
]
