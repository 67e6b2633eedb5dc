from typing import Any

from ganlab_builtin.optimizers import *

def __getattr__(name: str) -> Any: ...
