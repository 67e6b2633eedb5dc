"""The code that TensorFlow traces: inputs, networks, penalties, the step and the loop of steps."""
