# Made by tools/stubs.py.
from ganlab_builtin.optimizers.gradient import adam as adam
from ganlab_builtin.optimizers.gradient import adamw as adamw
from ganlab_builtin.optimizers.gradient import extragradient as extragradient
from ganlab_builtin.optimizers.gradient import muon as muon
from ganlab_builtin.optimizers.gradient import optimistic_adam as optimistic_adam
from ganlab_builtin.optimizers.gradient import rmsprop as rmsprop
from ganlab_builtin.optimizers.gradient import sgd as sgd
