from typing import Any

from ganlab_builtin.schedules import *

def __getattr__(name: str) -> Any: ...
