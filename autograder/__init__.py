"""Build, verify and grade the course's homeworks; staff only."""

from course_utils.quick import without_slow_imports

with without_slow_imports():
    import jsonschema as _  # noqa: F401  every notebook library loads it
