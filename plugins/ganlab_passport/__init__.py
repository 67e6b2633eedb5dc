"""The application `ganlab passport`: penalties and losses as inputs and answers, for programs in any framework.

A passport is a file of inputs with the values and gradients that they lead to (`ganlab_passport.passport`); its check
compares the answers of a program, and names the convention that they follow (`ganlab_passport.conventions`).
"""

from ganlab_passport.tensors import encode

__all__ = ["encode"]
