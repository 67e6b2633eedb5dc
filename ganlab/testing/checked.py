"""The test module of `ganlab plugins check`: a class for each component that it was asked for."""

from ganlab.testing.check_process import classes

globals().update(classes)
