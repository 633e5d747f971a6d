# %% Leave processes behind: sessions of their own, orphans of orphans, signals ignored, a shell in the background.
import os
import signal
import subprocess
import time


def orphan():
    if os.fork() == 0:
        try:
            os.setsid()
        except OSError:
            pass
        if os.fork() == 0:
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            while True:
                time.sleep(1000)
        os._exit(0)


orphan()
subprocess.Popen(["/bin/sh", "-c", "setsid true; trap '' TERM HUP; while :; do sleep 1000; done"])
print("left behind")


# %%
def row_weights(scores, blocked=None):
    orphan()
    orphan()
    os._exit(0)
