"""What notebooks import: the grader, plots, seeds, devices, bars, training, checkpoints, tools for derivations."""
