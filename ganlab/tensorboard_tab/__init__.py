"""The tab of ganlab in TensorBoard: a plugin of TensorBoard that shows runs side by side, without TensorFlow."""

from ganlab.tensorboard_tab.plugin import GanlabTab

__all__ = ["GanlabTab"]
