"""Steps of a run once more: training is a function of the seed and the step, so any of them can be made again."""

from ganlab.training.time_travel.bisecting import Onset, bisect
from ganlab.training.time_travel.forking import fork
from ganlab.training.time_travel.replaying import Replayed, replay

__all__ = ["Onset", "Replayed", "bisect", "fork", "replay"]
