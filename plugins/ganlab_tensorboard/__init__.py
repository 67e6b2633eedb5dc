"""The application `ganlab tensorboard`, and ganlab's tab in TensorBoard."""
