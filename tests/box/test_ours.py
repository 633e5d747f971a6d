"""Our own functions in a box are as we wrote them when the judge asks for one."""

from __future__ import annotations

import importlib
import sys
from types import FunctionType, ModuleType

import numpy as np
import pytest
import torch

from autograder.box.ours import Ours, our_modules
from autograder.places import COURSE_UTILS, PACKAGE
from course_utils.checking.compare import same
from course_utils.data import images
from course_utils.hw1 import kernels
from course_utils.instruments import work

PATCHES = {
    "a name": "w.count_work = lambda *a, **k: {'flops': 1}",
    "a helper": "w._Counter = None",
    "a builtin": "w.dict = lambda *_: {'flops': 1}",
    "a method": "w._Counter.__torch_dispatch__ = lambda *_, **__: None",
    "a new method": "w._Counter.__getattribute__ = lambda *_: 1",
    "the code": "w.count_work.__code__ = (lambda f, /, *a, **k: {'flops': 1}).__code__",
    "a lost name": "del w.count_work",
    "what a dict holds": "w.flop_registry.clear()",
    "a base": "class Liar(w._Counter.__bases__[0]):\n    pass\nw._Counter.__bases__ = (Liar,)",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES.keys())
def test_a_cell_that_patches_course_utils_changes_nothing(enter, patch):
    student = enter()
    cell = f"import course_utils.instruments.work as w\n{patch}\ndef product(a, b):\n    return a @ b"
    assert [outcome.fault for outcome in student.load([{"id": "patch", "source": cell}])] == [None]
    a, b = torch.ones(3, 5), torch.ones(5, 7)
    same(student.run(work.count_work, student["product"], a, b), work.count_work(torch.matmul, a, b), "the work")


def test_our_functions_stay_the_same_objects_for_the_student(enter):
    student = enter()
    cell = "from course_utils.hw1.kernels import gaussian_kernel as g\ndef same(kernel):\n    return kernel is g"
    student.load([{"id": "same", "source": cell}])
    assert student["same"](kernels.gaussian_kernel)


def functions() -> dict[str, list[str]]:
    """The public functions of every module of ours, in every room."""
    found = {}
    for name in our_modules():
        names = vars(importlib.import_module(name)).items()
        own = [key for key, value in names if isinstance(value, FunctionType) and value.__module__ == name]
        found[name] = [key for key in own if not key.startswith("_")]
    return {name: keys for name, keys in found.items() if keys}


EVERYWHERE = {
    "names": "setattr(module, name, lambda *_, **__: {'flops': 1})",
    "code": "f = getattr(module, name)\n"
    "        if not f.__code__.co_freevars: f.__code__ = (lambda *_, **__: 1).__code__",
}


@pytest.mark.parametrize("patch", EVERYWHERE.values(), ids=EVERYWHERE.keys())
def test_a_cell_that_patches_every_room_changes_nothing_that_the_judge_asks_for(enter, patch):
    """Every module of ours is warm, and each of its functions is as we wrote it when the judge names it."""
    student, wanted = enter(), functions()
    cell = (
        f"import sys\nWANTED = {wanted!r}\nCOLD = [name for name in WANTED if name not in sys.modules]\n"
        f"for module in [sys.modules[name] for name in WANTED if name in sys.modules]:\n"
        f"    for name in WANTED[module.__name__]:\n        {patch}\n"
        "def told(f):\n    return f.__module__, f.__name__, f.__code__.co_name, f.__code__.co_code.hex()\n"
        "def product(a, b):\n    return a @ b"
    )
    assert [outcome.fault for outcome in student.load([{"id": "patch", "source": cell}])] == [None]
    assert student["COLD"] == []
    for module, names in wanted.items():
        for f in (getattr(importlib.import_module(module), name) for name in names):
            expected = (f.__module__, f.__name__, f.__code__.co_name, f.__code__.co_code.hex())
            assert student["told"](f) == expected, f"{module}:{f.__name__} is the student's"
    a, b = torch.ones(3, 5), torch.ones(5, 7)
    same(student.run(work.count_work, student["product"], a, b), work.count_work(torch.matmul, a, b), "the work")
    assert student.run(kernels.gaussian_kernel, a, 2 * a).equal(kernels.gaussian_kernel(a, 2 * a))


CONTAINERS = """
import sys

def containers(name):
    module = sys.modules[name]
    owners = [module, *(v for v in vars(module).values() if isinstance(v, type) and v.__module__ == name)]
    for owner in owners:
        for key, value in vars(owner).items():
            if isinstance(value, (dict, list, set)) and key not in ("__builtins__", "__annotations__"):
                yield f"{owner.__name__}.{key}", value
    for key, value in vars(module).items():
        if isinstance(value, type(told)) and value.__module__ == name:
            for given in (*(value.__defaults__ or ()), value.__kwdefaults__, vars(value)):
                if isinstance(given, (dict, list, set)):
                    yield key, given


def told(names):
    return {f"{name} {i} {where}": sorted(map(str, value)) if isinstance(value, (dict, set)) else len(value)
            for name in names for i, (where, value) in enumerate(containers(name))}
"""


def test_a_cell_that_empties_every_container_changes_nothing_that_the_judge_asks_for(enter):
    """Dicts, lists and sets in our modules, our classes and the defaults of our functions are as we wrote them."""
    student, names = enter(), [name for name in our_modules() if not name.startswith("autograder.box")]
    emptied = "for name in NAMES:\n    for _, value in list(containers(name)):\n        value.clear()\n"
    answer = "def told_after(f):\n    return told(NAMES)\nLEFT = sum(map(bool, told(NAMES).values()))"
    cell = f"{CONTAINERS}\nNAMES = {names!r}\n{emptied}{answer}"
    assert [outcome.fault for outcome in student.load([{"id": "emptied", "source": cell}])] == [None]
    assert student["LEFT"] == 0
    here: dict = {}
    exec(CONTAINERS, here)
    images.read_ahead()  # as the process has done that boxes are forked from
    expected = here["told"](names)
    assert len(expected) > 30
    assert student["told_after"](kernels.gaussian_kernel) == expected


KIT = """
from functools import cache, partial
LIST, NESTED, CLASS_MADE = [1], {"a": ([2], {3})}, None

class Thing:
    shared = {"b": 4}
    def __init__(self): self.own = [5]
    @staticmethod
    def fixed(): return 6
    @property
    def seen(self): return 7

THING = Thing()

def _remembered(kept=[8]): return kept[0]
remembered = partial(_remembered)
remembered_by_name = lambda *, kept={"c": 9}: kept["c"]

def _closed():
    inside = [10]
    def closed(): return inside[0]
    return closed

closed = _closed()
closed.noted = 11

@cache
def cached(): return [12]

def said():
    return [*LIST, *NESTED["a"][0], *NESTED["a"][1], THING.shared["b"], *THING.own, THING.fixed(), THING.seen,
            remembered(), remembered_by_name(), closed(), closed.noted, *cached(), float(NUMBERS[0])]
"""
CHANGES = {
    "a list": "k.LIST.append(0)",
    "a list in a dict": "k.NESTED['a'][0][0] = 0",
    "a set in a tuple": "k.NESTED['a'][1].add(0)",
    "a dict of a class": "k.Thing.shared['b'] = 0",
    "an object": "k.THING.own = [0]",
    "what an object holds": "k.THING.own[0] = 0",
    "a static method": "k.Thing.fixed.__code__ = (lambda: 0).__code__",
    "a property": "k.Thing.seen.fget.__code__ = (lambda self: 0).__code__",
    "a default": "k._remembered.__defaults__[0][0] = 0",
    "a default by name": "k.remembered_by_name.__kwdefaults__['kept']['c'] = 0",
    "another default": "k._remembered.__defaults__ = ([0],)",
    "a closure": "k.closed.__closure__[0].cell_contents = [0]",
    "what a closure holds": "k.closed.__closure__[0].cell_contents[0] = 0",
    "a function's attribute": "k.closed.noted = 0",
    "a cache": "k.cached()[0] = 0",
    "an array": "k.NUMBERS[0] = 0",
}


@pytest.mark.parametrize("array", [np.ones, torch.ones], ids=["numpy", "torch"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_whatever_a_module_of_ours_holds_is_put_back(monkeypatch, change, array):
    kit = ModuleType("course_utils.kit_of_a_test")
    monkeypatch.setitem(sys.modules, kit.__name__, kit)
    kit.NUMBERS = array(2)
    exec(KIT, vars(kit))
    kept, before = Ours(), kit.said()
    exec(change, {"k": kit})
    assert kit.said() != before
    kept.restore()
    assert kit.said() == before


def test_every_room_has_functions_to_patch():
    rooms = {path.name for path in COURSE_UTILS.iterdir() if (path / "__init__.py").is_file()}
    assert {name.split(".")[1] for name in functions() if name.startswith("course_utils.")} == rooms
    kits = {path.stem for path in (PACKAGE / "in_box").glob("*.py")} - {"__init__"}
    assert {name.split(".")[2] for name in functions() if name.startswith("autograder.in_box.")} == kits
