"""What ganlab costs, as ratios: a module for each family of figures."""
