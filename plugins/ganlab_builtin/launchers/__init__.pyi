# Made by tools/stubs.py.
from ganlab_builtin.launchers.local import Local as Local
from ganlab_builtin.launchers.on_ray import OnRay as OnRay
from ganlab_builtin.launchers.slurm import Submitit as Submitit
