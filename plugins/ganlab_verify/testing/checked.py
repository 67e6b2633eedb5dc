"""The test module of `ganlab plugins check`: one class for each component to check."""

from ganlab_verify.testing.check_process import classes

globals().update(classes)
