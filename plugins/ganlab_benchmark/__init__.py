"""The application `ganlab benchmark`: every constraint on the same tasks, ranked with the noise of seeds."""
