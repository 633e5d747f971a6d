"""The judge behind the tools that instructors already use: nbgrader, otter, Gradescope, and grade books of an LMS."""
