"""The course to attack has suites of its own: the judge collects those, pytest must not."""

collect_ignore = ["course"]
