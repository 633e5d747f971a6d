"""Advice for people, never a verdict: code in a submission that no answer of this course needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

ODD_CALLS = {
    "os._exit": "ends the process",
    "os.fork": "starts processes",
    "os.kill": "sends signals",
    "os.system": "runs commands",
    "sys._getframe": "walks the stack",
    "inspect.stack": "walks the stack",
    "inspect.currentframe": "walks the stack",
    "gc.get_objects": "searches memory for objects",
    "gc.get_referrers": "searches memory for objects",
    "socket.socket": "opens a connection",
    "ctypes.CDLL": "calls native code",
    "signal.signal": "handles signals",
    "resource.setrlimit": "changes its own limits",
    "pickle.dump": "writes pickles",
    "builtins.__import__": "replaces the import",
}
ODD_MODULES = {
    "ctypes",
    "socket",
    "subprocess",
    "multiprocessing",
    "gc",
    "pty",
    "ptrace",
    "faulthandler",
    "autograder",
    "threading",
    "_thread",
    "concurrent",
}  # work in another thread is not counted
ODD_METHODS = {"__torch_function__", "__torch_dispatch__", "__array_function__", "__reduce__", "__reduce_ex__"}
ODD_TEXTS = ("/proc/", "/autograder", "gradebook.db", "results.jsonl", "COURSE_GRADING", "NBGRADER")
PATCHED = {"torch", "numpy", "pytest", "course_utils", "builtins", "safetensors", "autograder"}
USUAL = {"np": "numpy", "F": "torch.nn.functional", "nn": "torch.nn"}  # imported by the notebook


def look(cells: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """What a person might want to look at in a notebook, in words, and sentences about the cells that are no Python.

    Those are searched for words. What one cell imports has its name in all.
    """
    trees: list[ast.AST] = []
    texts: dict[str, str] = {}
    for name, source in cells.items():
        try:
            trees.append(ast.parse(source))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            texts[name] = source
    names = dict(USUAL)
    for tree in trees:
        names |= _imported(tree)
    found: dict[str, None] = {}
    for tree in trees:
        for node in ast.walk(tree):
            for told in _about(node, names):
                found[told] = None
    for text in texts.values():
        found |= dict.fromkeys(_mentioned(text))
    return list(found), [f"{name} cannot be read as Python; it was only searched for words" for name in texts]


def _mentioned(text: str) -> list[str]:
    """Odd words in what is no Python."""
    words = set(re.findall(r"[\w.]+", text))
    odd = [name for name in ODD_CALLS if name in words] + [name for name in sorted(ODD_METHODS) if name in words]
    odd += [word for word in sorted(ODD_MODULES) if re.search(rf"\b(?:import|from)\s+{word}\b", text)]
    return [f"mentions `{word}`" for word in odd + [word for word in ODD_TEXTS if word in text]]


def _imported(tree: ast.AST) -> dict[str, str]:
    """What stands behind the names that the code imports: `import course_utils.instruments.work as w` gives w."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _about(node: ast.AST, names: Mapping[str, str]) -> list[str]:
    if isinstance(node, ast.Call) and (name := _dotted(node.func, names)) in ODD_CALLS:
        return [f"`{name}` {ODD_CALLS[name]}"]
    if isinstance(node, ast.Call) and _dotted(node.func, names) in ("setattr", "delattr") and node.args:
        name = f"{_dotted(node.args[0], names)}.*"
        return [f"replaces `{name}`"] if _patches(name) else []
    if isinstance(node, ast.Import):
        return [f"imports `{alias.name}`" for alias in node.names if _is_odd_module(alias.name)]
    if isinstance(node, ast.ImportFrom) and _is_odd_module(node.module or ""):
        return [f"imports `{node.module}`"]
    if isinstance(node, ast.FunctionDef) and node.name in ODD_METHODS:
        return [f"defines `{node.name}`, which can make a tensor lie"]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [f"mentions `{text}`" for text in ODD_TEXTS if text in node.value]
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else node.targets
        set_here = [_dotted(target, names) for target in targets if isinstance(target, ast.Attribute)]
        return [f"replaces `{name}`" for name in set_here if _patches(name)]
    if isinstance(node, ast.Attribute):
        name = _dotted(node, names)
        return [f"reaches for `{name}`"] if name == "sys.modules" or _is_private(name) else []
    return []


def _is_odd_module(name: str) -> bool:
    return name.partition(".")[0] in ODD_MODULES or _is_private(name)


def _is_private(name: str) -> bool:
    """Whether this is a part of torch that is not meant for others: there one can switch counting off."""
    head, *rest = name.split(".")
    return head == "torch" and any(part.startswith("_") and not part.startswith("__") for part in rest)


def _patches(name: str) -> bool:
    """Whether setting this name changes a library for everybody; the switches of torch.backends are meant to be set."""
    head, _, rest = name.partition(".")
    return head in PATCHED and bool(rest) and not rest.startswith("backends.")


def _dotted(node: ast.AST, names: Mapping[str, str]) -> str:
    """A chain of names as one name, an imported one in full."""
    rest: list[str] = []
    while isinstance(node, ast.Attribute):
        rest.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([names.get(node.id, node.id), *reversed(rest)])
