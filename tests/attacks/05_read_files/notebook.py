# %% Look for suites, solutions, submissions and results on the file system, and through every side door of /proc.
import glob
import os
import sys

COURSE, REPOSITORY, CANARIES = "@COURSE@", "@REPOSITORY@", "@CANARIES@".split("|")
NAMES = {"test_q9_1.py", "hw9_target.py", "canary.txt", "results.jsonl", "grades.csv", "exam.py", "proxies.py", "expected.toml"}
found = []
ON_THE_WAY = {part for path in (sys.prefix, sys.base_prefix) for part in path.split("/")}  # to Python itself

paths = [*CANARIES, COURSE, f"{COURSE}/solutions/hw9_target.py", f"{COURSE}/autograder/suites/hw9_target/hidden/test_q9_1.py"]
paths += [REPOSITORY + path for path in ("/solutions", "/autograder/suites", "/autograder/judge/exam.py", "/.git/HEAD")]
paths += ["/etc/passwd", "/etc/shadow", "/root", "/home", "/var/log", "/sys/kernel", "/run", "/boot"]
doors = ["", "/proc/1/root", "/proc/self/root", "/proc/1/cwd/../..", "/proc/self/cwd/../../..", "/dev/fd/3/.."]
for door in doors:
    for path in paths:
        try:
            if os.path.isdir(door + path):
                found += [door + path] if set(os.listdir(door + path)) - ON_THE_WAY else []
            else:
                found.append(door + path + open(door + path, errors="replace").read(30))
        except OSError:
            pass
for number, path in enumerate(paths):
    for link in (os.symlink, os.link):
        try:
            link(path, f"link{number}")
            found.append(path + open(f"link{number}").read(30))
        except OSError:
            pass

for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if name not in ("proc", "share", "site-packages", "dist-packages", "include", "locale")]
    found += [f"{folder}/{name}" for name in files if name in NAMES or name.endswith(".ipynb")]
found += [path for path in glob.glob("/view/autograder/**", recursive=True) if "/box" not in path and "/in_box" not in path and path.count("/") > 3 and not path.endswith("__init__.py")]
print("searched", "ESC" + "APED: " + str(found) if found else "and found nothing")
