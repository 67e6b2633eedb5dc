# Made by tools/stubs.py.
from ganlab_builtin.strategies.local import mirrored as mirrored
from ganlab_builtin.strategies.local import one_device as one_device
from ganlab_builtin.strategies.tpus import tpu as tpu
from ganlab_builtin.strategies.workers import multi_worker as multi_worker
