"""Measures the generator of an existing run, or a folder of images, by evaluators."""
