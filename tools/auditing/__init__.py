"""What tools/recipes.py holds published files against: tables of facts, probes of what is here, and verdicts."""
