"""Plans where to train an experiment: memory, arithmetic, traffic and time of an iteration on hardware not at hand."""

from ganlab_plan.places import Place, place
from ganlab_plan.planner import Plan, plan

__all__ = ["Place", "Plan", "place", "plan"]
