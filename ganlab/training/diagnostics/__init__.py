"""Diagnostics while training: when each looks, and the view of the critic that it is given."""
