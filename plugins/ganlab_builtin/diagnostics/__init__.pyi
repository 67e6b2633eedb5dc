# Made by tools/stubs.py.
from ganlab_builtin.diagnostics.gradient_norms import GradientNorms as GradientNorms
from ganlab_builtin.diagnostics.lipschitz_interval import LipschitzInterval as LipschitzInterval
from ganlab_builtin.diagnostics.singular_values import SingularValues as SingularValues
from ganlab_builtin.diagnostics.slopes import Slopes as Slopes
from ganlab_builtin.diagnostics.surface import Surface as Surface
from ganlab_builtin.diagnostics.transport_gradient import TransportGradient as TransportGradient
from ganlab_builtin.diagnostics.units import Units as Units
from ganlab_builtin.diagnostics.wasserstein_error import WassersteinError as WassersteinError
from ganlab_builtin.diagnostics.weights import Weights as Weights
