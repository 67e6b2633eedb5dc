"""When a critic's mean slope counts as far from a penalty's target, and what to do then."""

from __future__ import annotations

# Below 2, so that a slope that two digits print as twice the target also counts.
STEEP, FLAT = 1.95, 0.5


def off_target(slope: float, target: float, weight: str) -> str | None:
    """Words for a slope far from the target that a penalty draws it to from both sides, and what to try.

    Args:
        slope: The mean slope.
        target: The slope that costs nothing; of 0 any slope is infinitely many times as steep, and none is far.
        weight: The parameter that is the penalty's factor, as experiment files have it.

    Returns:
        The end of a sentence that begins "The critic's mean slope is", and a sentence; None if the slope is sound.
    """
    if not target or FLAT * target <= slope < STEEP * target:
        return None
    if slope > target:
        problem, more = "steep: the penalty does not hold the critic", ""
    else:
        problem = "flat: the critic gives little signal"
        more = (
            ", more experiment.critic_steps or a larger learning rate; another constraint may also flatten the critic"
        )
    return f"{slope:.3g} where its target is {target:.3g}, {problem}. Try a larger {weight}{more}."
