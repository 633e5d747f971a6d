# %% One answer never comes back.
def row_weights(scores, blocked=None):
    while True:
        pass
