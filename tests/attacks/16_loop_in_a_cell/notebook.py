# %% A cell that never comes back, and one that never comes back in C.
while True:
    pass

# %%
import re

re.match(r"(x+x+)+y", "x" * 60)
