"""How long an iteration would take on a TPU slice, from its compiled program and the chip's data sheet."""
