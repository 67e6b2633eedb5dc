"""Lists, shows and watches runs, from their files alone: nothing in a run is executed."""
