"""What a command of the command line needs: messages, options, tables on a terminal. Does not import TensorFlow."""

from ganlab.cli.messages import say
from ganlab.support.signals import handling

__all__ = [
    "handling",
    "say",
]
