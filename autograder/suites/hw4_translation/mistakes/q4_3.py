# %% share-for-the-wrong-words-only
"""You spread the smoothing over the V - 1 wrong words. All V words share it, the right one too: its target is 1 -
eps + eps / V."""
replace("logp.mean()", "(logp.sum(-1).mean() - right) / (logits.shape[-1] - 1)")

# %% padding-in-the-mean
"""Padding counts as nothing in your sum, but you still divide by B times T. Divide by the number of real tokens."""
replace("return -(1 - smoothing) * right - smoothing * logp.mean()",
        "return (-(1 - smoothing) * right - smoothing * logp.mean()) * real.sum() / real.numel()")

# %% padding-in-the-loss
"""Your loss asks the model to predict padding: the padded places are in the mean like all others."""
replace("labels != pad_id", "labels == labels")

# %% mean-of-the-sentences
"""You take the mean of each sentence first, so a word in a short sentence weighs more than one in a long sentence.
It is one mean over all real tokens."""
replace("logp = logits[real].log_softmax(-1)  # [n, V]: the n real tokens", """logp = logits.log_softmax(-1)
    right = logp.gather(-1, labels.masked_fill(~real, 0)[..., None])[..., 0]  # [B, T]
    loss = -(1 - smoothing) * right - smoothing * logp.mean(-1)
    return ((loss * real).sum(1) / real.sum(1)).mean()""")

# %% smoothing-term-over-padding
"""The first term is right, and the smoothing term is averaged over padded places too. Both are means over the real
tokens."""
replace("smoothing * logp.mean()", "smoothing * logits.log_softmax(-1).mean()")

# %% pad-class-left-out price=0.2
"""You give the padding token no share of the smoothing. As in PyTorch, all V words share it equally, that one
too."""
def smoothed_loss(logits, labels, pad_id, smoothing=0.1):
    real = labels != pad_id
    V = logits.shape[-1]
    target = torch.full_like(logits, smoothing / (V - 2))
    target.scatter_(-1, labels.masked_fill(~real, 0)[..., None], 1 - smoothing)
    if 0 <= pad_id < V:
        target[..., pad_id] = 0
    return -(target * logits.log_softmax(-1)).sum(-1)[real].mean()

# %% smoothing-fixed price=0.2
"""Your loss smooths by 0.1 whatever is asked for. Use the argument."""
replace("-(1 - smoothing) * right - smoothing * logp.mean()", "-0.9 * right - 0.1 * logp.mean()")

# %% log-of-softmax
"""Infinite for large logits: a probability underflows to 0 before its logarithm is taken. log_softmax does both in
one."""
replace("log_softmax(-1)", "softmax(-1).log()")

# %% gather-at-the-padding price=0.2
"""Your loss fails where pad_id is no word of the vocabulary, such as -100: the padded labels are looked up like words.
Leave them out, or replace them, before you look anything up."""
replace("right = logp.gather(-1, labels[real][:, None]).mean()",
        "right = logits.log_softmax(-1).gather(-1, labels[..., None])[real].mean()")

# %% padding-always-0 price=0.2
"""You take 0 for padding, whatever pad_id is. It goes unnoticed as long as pad_id happens to be 0."""
replace("labels != pad_id", "labels != 0")

# %% torchs-own-loss price=0.8
"""Your answer calls torch's own cross-entropy. This question asks you to build it: log_softmax is allowed."""
def smoothed_loss(logits, labels, pad_id, smoothing=0.1):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id, label_smoothing=smoothing)

# %% nan-for-large-logits price=0.3
"""NaN for large logits: a probability underflows to 0 before its logarithm is taken, and 0 times minus infinity is
NaN. log_softmax does both in one."""
replace("return -(1 - smoothing) * right - smoothing * logp.mean()", """logp = logits.softmax(-1).log()
    right = logp.gather(-1, labels.masked_fill(~real, 0)[..., None])[..., 0]
    return (((smoothing - 1) * right - smoothing * logp.mean(-1)) * real).sum() / real.sum()""")

# %% log-with-an-epsilon price=0.3
"""Your loss is right to some digits only: a small number is added before the logarithm. log_softmax needs none, and
is exact for logits of any size."""
replace("logits[real].log_softmax(-1)", "(logits[real].softmax(-1) + 1e-9).log()")

# %% softmax-over-the-places
"""Even logits do not give log V: your softmax runs over the places of a sentence. The words of one place share its
probability: take it over the last axis."""
replace("logits[real].log_softmax(-1)", "logits.log_softmax(1)[real]")

# %% share-without-the-pad-word
"""The padding token gets none of your smoothing, and the other V - 1 words share it. As in PyTorch, all V words share
it equally, that one too."""
replace("smoothing * logp.mean()", """smoothing * (
        logp.mean() if not 0 <= pad_id < logp.shape[1]
        else (logp.sum(-1) - logp[:, pad_id]).mean() / (logp.shape[1] - 1))""")

# %% sum-for-the-mean
"""Your loss grows with the number of tokens: it is their sum. Divide by the number of real tokens."""
replace("return -(1 - smoothing) * right - smoothing * logp.mean()",
        "return (-(1 - smoothing) * right - smoothing * logp.mean()) * real.sum()")

# %% no-gradient price=0.4
"""Your loss is a plain number, from which no gradient flows: leave out `.item()`, and return the tensor."""
replace("return -(1 - smoothing) * right - smoothing * logp.mean()",
        "return (-(1 - smoothing) * right - smoothing * logp.mean()).item()")

# %% float32-inside price=0.2
"""In float64 your loss has seven digits only: somewhere inside you go through float32. Leave the logits in their own
dtype."""
replace("logits[real].log_softmax(-1)", "logits[real].float().log_softmax(-1).to(logits.dtype)")

# %% share-not-divided
"""The smoothing term is the sum over all V words, and not their mean: each word has the share eps / V."""
replace("smoothing * logp.mean()", "smoothing * logp.sum(-1).mean()")
