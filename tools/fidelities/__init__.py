"""Networks of published programs beside ganlab's: the same weights, numbers and one update of each."""
