# %% Hooks that see everything, and one that forbids everything.
import sys
import threading

seen = []
sys.addaudithook(lambda event, args: seen.append(event) if len(seen) < 10 else None)
sys.setprofile(lambda *args: None)
sys.settrace(lambda *args: None)
threading.settrace(lambda *args: None)
print("watching")


# %%
def row_weights(scores, blocked=None):
    def forbid(event, args):
        raise RuntimeError(f"no {event}")

    sys.addaudithook(forbid)
    return scores
