# %% A cell that ends the process, one that ends it by a signal, and one that empties it
import os

os._exit(0)

# %%
import ctypes

ctypes.string_at(0)

# %%
import os
import signal

for name in ("SIGKILL", "SIGTERM", "SIGSEGV"):
    os.kill(os.getpid(), getattr(signal, name))
os._exit(7)
