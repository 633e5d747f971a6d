# %% Warnings, prints, logs and standard error.
import logging
import os
import sys
import warnings

warnings.simplefilter("error")
warnings.resetwarnings()
warnings.warn("a warning", DeprecationWarning)
logging.warning("a log")
print("to stderr", file=sys.stderr)
os.write(2, b"to the descriptor")


# %% question="q9_1"
def row_weights(scores, blocked=None):
    warnings.warn(f"called with {scores}")
    print("noise", file=sys.stderr)
    logging.error("noise")
    if blocked is not None:
        scores = scores.masked_fill(blocked, -torch.inf)
    return torch.softmax(scores, -1)
