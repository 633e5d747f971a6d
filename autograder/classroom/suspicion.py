"""Advice for people, never a verdict: code in a submission that no answer of this course needs."""

from __future__ import annotations

import ast

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
ODD_MODULES = {"ctypes", "socket", "subprocess", "multiprocessing", "gc", "pty", "ptrace", "faulthandler", "autograder"}
ODD_METHODS = {"__torch_function__", "__torch_dispatch__", "__array_function__", "__reduce__", "__reduce_ex__"}
ODD_TEXTS = ("/proc/", "/autograder", "gradebook.db", "results.jsonl", "COURSE_GRADING", "NBGRADER")
PATCHED = {"torch", "np", "numpy", "pytest", "course_utils", "builtins", "F"}


def odd_things(source: str) -> list[str]:
    """What a person might want to look at, in words; empty for ordinary answers."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        for told in _about(node):
            found[told] = None
    return list(found)


def _about(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Call) and (name := _dotted(node.func)) in ODD_CALLS:
        return [f"`{name}` {ODD_CALLS[name]}"]
    if isinstance(node, ast.Import):
        return [f"imports `{alias.name}`" for alias in node.names if alias.name.partition(".")[0] in ODD_MODULES]
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ODD_MODULES:
        return [f"imports `{node.module}`"]
    if isinstance(node, ast.FunctionDef) and node.name in ODD_METHODS:
        return [f"defines `{node.name}`, which can make a tensor lie"]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [f"mentions `{text}`" for text in ODD_TEXTS if text in node.value]
    if isinstance(node, ast.Assign):
        names = [_dotted(target) for target in node.targets]
        return [f"replaces `{name}`" for name in names if _patches(name)]
    return []


def _patches(name: str) -> bool:
    """Whether setting this name changes a library for everybody; the switches of torch.backends are meant to be set."""
    head, _, rest = name.partition(".")
    return head in PATCHED and bool(rest) and not rest.startswith("backends.")


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""
