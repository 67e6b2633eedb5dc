"""What `ganlab tensorboard` adds to TensorBoard: a folder of links to runs, and its tabs."""
