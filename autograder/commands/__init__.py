"""The commands of `autograder`: each module adds its own to the parser, and holds what they do."""
