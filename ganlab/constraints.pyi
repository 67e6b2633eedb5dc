from typing import Any

from ganlab_builtin.constraints import *

def __getattr__(name: str) -> Any: ...
