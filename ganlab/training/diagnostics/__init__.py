"""Diagnostics during training: when each looks, and the view of the critic that it receives."""
