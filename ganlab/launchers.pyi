from typing import Any

from ganlab_builtin.launchers import *

def __getattr__(name: str) -> Any: ...
