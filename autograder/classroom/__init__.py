"""The class as a whole: what went wrong, for whom, and which submissions need a person."""
