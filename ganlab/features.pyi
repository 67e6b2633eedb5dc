from typing import Any

from ganlab_builtin.features import *

def __getattr__(name: str) -> Any: ...
