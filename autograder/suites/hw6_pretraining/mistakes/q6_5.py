# %% one-direction price=0.3
"""Only the rows ask in your loss. The columns ask too ("which a belongs to b_i?"), and the loss is the mean of both."""
replace("(F.cross_entropy(similarities, own) + F.cross_entropy(similarities.T, own)) / 2", "F.cross_entropy(similarities, own)")

# %% sum-of-directions price=0.2
"""Your loss is the sum of the two directions. It is their mean."""
replace("F.cross_entropy(similarities.T, own)) / 2", "F.cross_entropy(similarities.T, own))")

# %% rows-not-scaled price=0.3
"""The rows keep their lengths: a long row then counts as similar to everything. Scale all to length 1 first."""
replace("a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)", "")

# %% only-a-is-scaled price=0.25
"""Only the rows of a have length 1. Those of b need it too."""
replace("F.normalize(a, dim=-1), F.normalize(b, dim=-1)", "F.normalize(a, dim=-1), b")

# %% scaled-along-the-batch price=0.3
"""You scale columns, over the batch, instead of rows."""
replace("F.normalize(a, dim=-1), F.normalize(b, dim=-1)", "F.normalize(a, dim=0), F.normalize(b, dim=0)")

# %% times-temperature price=0.3
"""You multiply by the temperature. The similarities are divided by it: a low temperature makes differences larger."""
replace("@ b.T / temperature", "@ b.T * temperature")

# %% exp-of-large-numbers price=0.15
"""Infinite or NaN at a low temperature: exp of large numbers overflows. log_softmax, logsumexp and cross_entropy subtract the
largest first."""
def info_nce(a, b, temperature=0.1):
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    e = torch.exp(a @ b.T / temperature)
    own = e.diagonal()
    return -(torch.log(own / e.sum(1)).mean() + torch.log(own / e.sum(0)).mean()) / 2

# %% own-pair-left-out price=0.25
"""The sum in your denominator leaves the right answer out. It is one of the B answers."""
def info_nce(a, b, temperature=0.1):
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    s = a @ b.T / temperature
    own = torch.eye(len(a), dtype=torch.bool, device=a.device)
    rest = s.masked_fill(own, -torch.inf)
    return ((rest.logsumexp(1) - s.diagonal()).mean() + (rest.logsumexp(0) - s.diagonal()).mean()) / 2

# %% spans-are-contrastive price=0.1
"""Filling the gap of a span asks for the words that were there: they are produced, so it is generative."""
replace('"next word", "fill the gap of a span"), "generative")', '"next word"), "generative")')
replace('"which caption belongs to which image"), "contrastive")', '"which caption belongs to which image", "fill the gap of a span"), "contrastive")')

# %% order-is-generative price=0.1
"""Sentence order asks whether two sentences stand in their order. Nothing is produced: it is contrastive."""
replace('"next word", "fill', '"next word", "sentence order", "fill')
replace('("next sentence", "sentence order", ', '("next sentence", ')

# %% kinds-swapped price=0.3
"""Generative and contrastive have changed places: hiding a word and asking for it is generative."""
replace('return kinds[task]', 'return {"generative": "contrastive", "contrastive": "generative"}[kinds[task]]')

# %% unknown-tasks-accepted price=0.1
"""A task that is none of the six gets a kind. It is a ValueError."""
replace("if task not in kinds:", "if False:")
replace("return kinds[task]", 'return kinds.get(task, "generative")')
