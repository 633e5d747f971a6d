# %% predicts-itself price=0.35
"""Logits are held against the token at their own place. Those at place i predict token i + 1."""
replace("F.cross_entropy(torch.cat(logits), ids[1:])", "F.cross_entropy(torch.cat(logits), ids[:-1])")

# %% cut-into-pieces price=0.3
"""The text is cut into pieces of max_len, so the first tokens of each piece are predicted from too few. Every token
beyond the first piece needs a window of its own."""
replace("windows = ids[1:-1].unfold(0, L, 1) if N - 2 >= L else ids.new_empty(0, L)  # [N - 1 - L, L]", "")
replace("logits += [model(some)[:, -1] for some in windows.split(64) if len(some)]",
        "logits += [model(some[None])[0] for some in ids[L:-1].split(L) if len(some)]")

# %% only-the-last-window price=0.35
"""Of a text that is too long only the end is judged: every token from 1 to N - 1 counts."""
replace("N, L = len(ids), model.max_len", "L = model.max_len\n    ids = ids[-L - 1 :]\n    N = len(ids)")

# %% window-one-short price=0.2
"""Windows are one token too short: up to max_len tokens before the predicted one are looked at."""
replace("N, L = len(ids), model.max_len", "N, L = len(ids), max(model.max_len - 1, 1)")

# %% no-exponential price=0.25
"""That is the loss. Perplexity is its exponential."""
replace("math.exp(F.cross_entropy(torch.cat(logits), ids[1:]).item())", "F.cross_entropy(torch.cat(logits), ids[1:]).item()")

# %% two-to-the-loss price=0.2
"""The loss is in nats, and you raise 2 to it: with natural logarithms it is e."""
replace("math.exp(F.cross_entropy(torch.cat(logits), ids[1:]).item())", "2 ** F.cross_entropy(torch.cat(logits), ids[1:]).item()")

# %% sum-for-mean price=0.3
"""The loss is summed and not averaged: the result grows with the length of the text."""
replace("F.cross_entropy(torch.cat(logits), ids[1:])", "F.cross_entropy(torch.cat(logits), ids[1:], reduction='sum')")

# %% divided-by-n price=0.25
"""There are N - 1 predictions, and you divide by N."""
replace("F.cross_entropy(torch.cat(logits), ids[1:])", "(F.cross_entropy(torch.cat(logits), ids[1:], reduction='sum') / N)")

# %% mode-not-restored price=0.15
"""The model comes back in evaluation mode, whatever it was."""
replace("model.train(was_training)", "pass")

# %% training-mode-inside price=0.25
"""The model is judged in training mode, with dropout."""
replace("    model.eval()\n", "")

# %% nats-for-bits price=0.25
"""These are nats per character. A bit is a logarithm to the base 2."""
replace("math.log2(perplexity)", "math.log(perplexity)")

# %% bits-per-token price=0.3
"""These are bits per token: spread all of them over the characters."""
replace("return n_tokens * math.log2(perplexity) / n_characters", "return math.log2(perplexity)")

# %% upside-down price=0.3
"""Tokens and characters are exchanged: n_tokens predictions cost bits, and they are spread over n_characters."""
replace("n_tokens * math.log2(perplexity) / n_characters", "n_characters * math.log2(perplexity) / n_tokens")

# %% perplexity-divided price=0.3
"""Perplexities do not add up along a text, their logarithms do. Take the logarithm first, then spread it."""
replace("n_tokens * math.log2(perplexity) / n_characters", "math.log2(perplexity * n_tokens / n_characters)")
