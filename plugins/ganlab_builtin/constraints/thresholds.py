"""The thresholds from which a slope counts as far from a penalty's target."""

# Below 2, so that a slope that two digits print as twice the target also counts.
STEEP, FLAT = 1.95, 0.5
