# %% Look for the reference and the tests on the stack, among all objects, and in all of this process's memory.
import gc
import inspect
import re
import sys

MARK = re.compile("MARK-OF-THE-[HS]")
RAW = re.compile(rb"MARK-OF-THE-[H]IDDEN")


def tell(what):
    raise RuntimeError("ESC" + "APED: " + what)


def hunt():
    own = set(globals())
    frames, frame = [], sys._getframe()
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    for frame in frames:
        for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
            if isinstance(value, str) and MARK.search(value) or name in ("reference", "reference_names", "expected"):
                tell(f"{name} in {frame.f_code.co_filename}")
    for name in list(sys.modules):
        if name.startswith(("solutions", "autograder.judge", "autograder.suites", "autograder.grading", "_pytest")):
            tell(name)
    gc.unfreeze()
    for thing in gc.get_objects():
        kind = type(thing)
        if kind.__name__ in ("Homework", "Exam", "Case", "Submission", "Task", "Keeper", "SocketChannel"):
            tell(kind.__name__)
        if kind is dict and any(type(value) is str and MARK.search(value) for value in list(thing.values())):
            tell("a dict")
        if inspect.isfunction(thing) and any(type(c) is str and MARK.search(c) for c in thing.__code__.co_consts):
            tell(thing.__qualname__)


def read_memory():
    try:
        maps, memory = open("/proc/self/maps"), open("/proc/self/mem", "rb", 0)
    except OSError:
        return
    for line in maps:
        span, rights, _, _, inode, *_ = line.split()
        if rights.startswith("rw") and inode == "0":
            start, end = (int(x, 16) for x in span.split("-"))
            memory.seek(start)
            try:
                if RAW.search(memory.read(min(end - start, 2**28))):
                    tell("in memory")
            except OSError:
                continue


read_memory()
print("read my memory")


# %%
hunt()
print("walked my stack")


# %%
def row_weights(scores, blocked=None):
    hunt()
    raise RuntimeError("nothing on the stack")
