"""The actions of a session between chunks of iterations: guard, evaluate, diagnose, log, save a checkpoint, profile."""
