"""What of a notebook's cell is Python: magics that only measure are taken off, others and shell lines become calls."""

from __future__ import annotations

import re

_MEASURES = "time|timeit|capture|prun|debug|memit|snakeviz|pyinstrument|scalene"  # they run Python as it stands
_ON_TOP = re.compile(rf"(?:\s*%%(?:{_MEASURES})\b[^\n]*(?:\n|\Z))+")
_IN_A_LINE = re.compile(r"(?m)^([^\n%#'\"]*)%(?:time|prun)[ \t]+(?=[^\s-])")
_OTHER = re.compile(r"\s*(%%\w{1,40})")


def split_measures(source: str) -> tuple[str, str]:
    """`%%time` and the like on top of a cell, and the code below."""
    found = _ON_TOP.match(source)
    return (found[0], source[found.end() :]) if found else ("", source)


def count_magics(code: str) -> int:
    """How many signs of magics and shell lines stand in it, or what looks like them."""
    return len(re.findall("[%!?]", code))


def other_language(code: str) -> str:
    """`%%bash` or the like on top of a cell, which makes it something else than Python; else nothing."""
    found = _OTHER.match(code)
    return found[1] if found else ""


def as_python(code: str) -> str:
    """The code with magics and shell lines as IPython calls them; raises what IPython raises."""
    from IPython.core.inputtransformer2 import TransformerManager

    return str(TransformerManager().transform_cell(code if other_language(code) else _IN_A_LINE.sub(r"\1", code)))
