"""Public checks of q4_8: cached_greedy_decode."""
def probe_x(cached_greedy_decode):
    return 1
