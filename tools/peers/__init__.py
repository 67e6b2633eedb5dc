"""What ganlab is measured against: the same training, written by hand without it."""
