# %% Write, append, truncate, rename, link and delete wherever results or other people's work could be.
import os
import shutil

COURSE, REPOSITORY, CANARIES, TOKEN = "@COURSE@", "@REPOSITORY@", "@CANARIES@".split("|"), "@TOKEN@"
done = []


def attempt(what, action, *args):
    try:
        action(*args)
        done.append(what)
    except OSError:
        pass


places = ["/", "/usr", "/etc", "/view", "/var/tmp", "/proc", "/dev", os.path.dirname(os.__file__), COURSE, REPOSITORY]
places += [f"{REPOSITORY}/tests", f"{COURSE}/solutions", *map(os.path.dirname, CANARIES)]
for place in places:
    attempt(f"file in {place}", lambda: open(f"{place}/{TOKEN}", "w").write("100"))
    attempt(f"folder in {place}", os.mkdir, f"{place}/{TOKEN}")
    attempt(f"link in {place}", os.symlink, "/etc/passwd", f"{place}/{TOKEN}")
for canary in CANARIES:
    attempt(canary, lambda: open(canary, "a").write("100"))
    attempt(canary, os.truncate, canary, 0)
    attempt(canary, os.unlink, canary)
    attempt(canary, os.rename, canary, canary + "2")
    attempt(canary, os.chmod, canary, 0)
    attempt(canary, os.utime, canary)
    attempt(canary, os.replace, "/tmp/x", canary)
for name in ("results.jsonl", "grades.csv", "results.json", "results.pkl", "gradebook.db", TOKEN):
    open(name, "w").write('{"total": 100}')
    shutil.copy(name, f"{name}.copy")
print("tried", "ESC" + "APED: " + str(done) if done else "everywhere")


# %%
def row_weights(scores, blocked=None):
    return {"score": 100, "verdict": "passed", "total": 100}


score = total = points = 100
verdict = "passed"
