# Made by tools/stubs.py.
from ganlab_builtin.searches.grid import Grid as Grid
from ganlab_builtin.searches.random_search import Random as Random
from ganlab_builtin.searches.tpe import Optuna as Optuna
