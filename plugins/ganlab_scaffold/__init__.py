"""Creates plugin packages from templates."""

from ganlab_scaffold.packages import OTHERS, TEMPLATES, NewPlugin, new_plugin

__all__ = ["OTHERS", "TEMPLATES", "NewPlugin", "new_plugin"]
