"""The additions of `ganlab tensorboard` to TensorBoard: a folder of links to runs, and its tabs."""
