"""What a command of the command line needs: messages, options, tables on a terminal. Does not import TensorFlow."""

from ganlab.cli.messages import say

__all__ = [
    "say",
]
