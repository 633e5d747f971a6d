"""What `course` cannot work with, told in a sentence."""

from __future__ import annotations


class Refusal(Exception):
    """Something that the student gave or has is of no use; the text says what, where, and what to do."""
