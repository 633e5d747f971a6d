# %% Look for it.
import glob
import os
import sys

import torch

TRACE = "left-by-" + "another-student"
found = [path for pattern in ("/tmp/*", "/dev/shm/*", "/var/tmp/*", "/run/*", "./*", "/view/*") for path in glob.glob(pattern) if TRACE in path]
found += [str(place) for place in (torch, sys, os) if hasattr(place, "left")] + (["env"] if "LEFT" in os.environ else [])
found += ["dtype"] if torch.get_default_dtype() != torch.float32 else []
found += [pid for pid in os.listdir("/proc") if pid.isdigit() and pid != str(os.getpid())]
found += sorted(os.listdir("."))
print("looked", "ESC" + "APED: " + str(found) if found else "and found nothing")
