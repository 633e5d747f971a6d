# %% Code that wants to run after the answer: exit handlers, finalisers, timers, threads.
import atexit
import os
import signal
import sys
import threading
import time
import weakref

import torch

PLACES = [path + "2" for path in "@CANARIES@".split("|")] + ["/@TOKEN@", "@COURSE@/@TOKEN@"]


def late(*args):
    for place in PLACES:
        try:
            open(place, "w").write("late")
        except OSError:
            pass


class Last:
    def __del__(self):
        late()


atexit.register(late)
keep = Last()
weakref.finalize(keep, late)
for name in ("SIGTERM", "SIGALRM", "SIGCHLD", "SIGUSR1", "SIGXCPU", "SIGPIPE"):
    signal.signal(getattr(signal, name), late)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
threading.Thread(target=lambda: [late() or time.sleep(0.05) for _ in range(10**6)], daemon=True).start()
os.register_at_fork(before=late, after_in_parent=late, after_in_child=late)
sys.setprofile(None)
print("tried")


# %%
class Late(torch.Tensor):
    def __del__(self):
        late()


def row_weights(scores, blocked=None):
    threading.Timer(0.01, late).start()
    return scores.clone().as_subclass(Late)
