# Made by tools/stubs.py.
from ganlab_builtin.schedules.curves import Bursts as Bursts
from ganlab_builtin.schedules.curves import ConstantThenLinear as ConstantThenLinear
from ganlab_builtin.schedules.curves import Cosine as Cosine
from ganlab_builtin.schedules.curves import Linear as Linear
from ganlab_builtin.schedules.curves import Warmup as Warmup
