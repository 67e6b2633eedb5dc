from typing import Any

from ganlab_builtin.diagnostics import *

def __getattr__(name: str) -> Any: ...
