"""Writing plugin packages from templates."""

from ganlab.authoring.packages import TEMPLATES, NewPlugin, new_plugin

__all__ = ["TEMPLATES", "NewPlugin", "new_plugin"]
