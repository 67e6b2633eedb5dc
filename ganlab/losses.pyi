from typing import Any

from ganlab_builtin.losses import *

def __getattr__(name: str) -> Any: ...
