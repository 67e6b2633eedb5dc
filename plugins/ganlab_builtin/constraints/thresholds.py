"""From where on the slope that a penalty aims at is far from its target."""

# What two digits print as twice the target is complained of, too.
STEEP, FLAT = 1.95, 0.5
