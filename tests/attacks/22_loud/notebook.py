# %% One line of 20 MB, a flood on every descriptor, and an answer that shouts.
import os
import subprocess
import sys

print("a" * (20 * 2**20))
sys.stdout.buffer.write(b"b" * 10**7)
sys.__stdout__ and sys.__stdout__.write("c" * 10**6)
for number in (0, 1, 2):
    try:
        os.write(number, b"d" * 10**6)
    except OSError:
        pass
subprocess.run(["/bin/sh", "-c", "yes | head -c 1000000"])


# %%
def row_weights(scores, blocked=None):
    print("e" * 10**7)
    print("f" * 10**7, file=sys.stderr)
    raise RuntimeError("g" * 10**7)
