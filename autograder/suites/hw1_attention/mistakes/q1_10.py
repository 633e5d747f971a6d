# %% beta-forgotten price=0.3
"""Your derivative lacks the factor beta: the score is beta q . k, and the chain rule passes through that
product."""
replace("return beta * a[j]", "return a[j]")

# %% other-weights-held-fixed
"""You let only weight j move, which gives a_j (1 - a_j) v_j. The weights sum to 1: when j gains, every other
key loses, and their values move the output too."""
replace("a[j] * torch.outer(V[j] - h, q)", "a[j] * (1 - a[j]) * torch.outer(V[j], q)")

# %% output-not-subtracted
"""You move along v_j. The output moves along the difference between v_j and the output itself: if it already
equals v_j, nothing changes."""
replace("torch.outer(V[j] - h, q)", "torch.outer(V[j], q)")

# %% key-for-query
"""Your columns are entries of the key: the derivative of q . k_j by k_j is the query."""
replace("torch.outer(V[j] - h, q)", "torch.outer(V[j] - h, K[j])")

# %% transposed price=0.3
"""Your Jacobian has shape [D, Dv]. The rows belong to the output, the columns to the key that is moved: [Dv,
D]."""
replace("torch.outer(V[j] - h, q)", "torch.outer(q, V[j] - h)")

# %% sign-flipped
"""Your derivative has the wrong sign: when the score of key j rises, the output moves towards v_j, not away
from it."""
replace("torch.outer(V[j] - h, q)", "torch.outer(h - V[j], q)")

# %% limit-always-wins
"""You say that a stretched key always wins. Its score is multiplied: a negative score becomes more negative,
and then the key loses all its weight."""
replace("scores[j] > 0 or len(K) == 1", "True")

# %% limit-zero-score-loses price=0.2
"""When q . k_j is zero, stretching the key changes nothing, but you drop the key: zero is a third case."""
replace("if scores[j] < 0:", "if scores[j] <= 0:")

# %% limit-zero-score-wins price=0.2
"""When q . k_j is zero, stretching the key changes nothing, but you let the key win: zero is a third case."""
replace("if scores[j] > 0 or", "if scores[j] >= 0 or")

# %% limit-not-renormalised
"""When the key loses, you only take its term out of the sum: the weights that remain must sum to 1 again."""
replace("scores = torch.where(torch.arange(len(K), device=K.device) == j, -math.inf, scores)",
        "return softargmax(scores, beta) @ V - softargmax(scores, beta)[j] * V[j]")

# %% limit-ignores-beta price=0.25
"""Your limit does not depend on beta: the keys that remain are still weighed with the given beta, not with 1
/ sqrt(D)."""
replace("return softargmax(scores, beta)", "return softargmax(scores, 1 / math.sqrt(len(q)))")

# %% limit-others-averaged
"""When the key loses you average the other values evenly. Their scores still count: the result is attention
over the keys that are left."""
replace("scores = torch.where(torch.arange(len(K), device=K.device) == j, -math.inf, scores)",
        "return V[torch.arange(len(K), device=K.device) != j].mean(0)")

# %% limit-small-product-taken-for-zero price=0.15
"""You take a small q . k_j for zero. Stretched without end, even a tiny score grows beyond all bounds: only a product
of exactly 0 stays where it is."""
replace("scores[j] > 0 or len(K) == 1", "scores[j] > 1e-6 or len(K) == 1")
replace("if scores[j] < 0:", "if scores[j] < -1e-6:")

# %% next-key
"""Your derivative is that by the key after key j: keys are counted from 0."""
replace("beta * a[j] * torch.outer(V[j] - h, q)", "beta * a[(j + 1) % len(K)] * torch.outer(V[(j + 1) % len(K)] - h, q)")

# %% key-stretched-in-place price=0.2
"""After your call the caller's keys are different: you stretch key j in place. Make a copy first."""
replace("scores = K @ q  # [S]", "K[j] *= 2.0 ** 300\n    scores = K @ q")

# %% stretched-by-a-thousand price=0.2
"""You stretch the key by a fixed factor and take that for the limit. A score that is close to 0 has not gone anywhere
yet: ask for its sign."""
replace("""    if scores[j] > 0 or len(K) == 1:
        return V[j].clone()  # all the weight goes to key j
    if scores[j] < 0:
        scores = torch.where(torch.arange(len(K), device=K.device) == j, -math.inf, scores)  # key j drops out
""", """    scores = torch.where(torch.arange(len(K), device=K.device) == j, 1e3 * scores, scores)
""")

# %% limit-at-beta-one price=0.25
"""Your limit forgets beta: where the stretched key loses, or does not notice, the other keys are weighed with `beta`
times their dot products."""
replace("return softargmax(scores, beta)", "return softargmax(scores)")

# %% key-before
"""Your derivative is that by the key before key j: keys are counted from 0, so j needs no shift."""
replace("beta * a[j] * torch.outer(V[j] - h, q)", "beta * a[j - 1] * torch.outer(V[j - 1] - h, q)")

# %% limit-by-the-key-alone
"""You look at the key alone to see where its score goes. The query decides: the sign is that of q . k_j."""
replace("if scores[j] > 0 or", "if K[j].sum() > 0 or")
