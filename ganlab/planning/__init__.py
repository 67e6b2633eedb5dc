"""Plans where to train an experiment: memory, arithmetic, traffic and time of an iteration on hardware not at hand."""

from ganlab.planning.places import Place, place
from ganlab.planning.planner import Plan, plan

__all__ = ["Place", "Plan", "place", "plan"]
