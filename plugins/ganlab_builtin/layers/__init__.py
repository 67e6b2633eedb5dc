"""Further layers of Lipschitz constant one. Importing this imports Keras.

They are used as those of `ganlab.layers`: `from ganlab_builtin.layers import AOCConv2D`.
"""

from ganlab_builtin.layers.adaptive import AOCConv2D, AOCConv2DTranspose
from ganlab_builtin.layers.reflectors import BROConv2D
from ganlab_builtin.layers.residuals import LiResConv2D

__all__ = ["AOCConv2D", "AOCConv2DTranspose", "BROConv2D", "LiResConv2D"]
