# %% eos-not-counted price=0.2
"""Your scores divide by the number of words without EOS, though the sum has EOS in it. The divisor counts the terms
of the sum."""
replace("(total / n**length_penalty, tokens[:-1])", "(total / max(1, n - 1) ** length_penalty, tokens[:-1])")

# %% eos-not-paid
"""Ending costs nothing in your search: EOS's log-probability is not in the sum, so short sentences win too
easily."""
replace("sums, places = (sums[:, None] + logp).flatten().topk(min(width, K * V))",
        """before = sums
        sums, places = (sums[:, None] + logp).flatten().topk(min(width, K * V))
        unpaid = before[places // V].tolist()""")
replace("for total, tokens in zip(sums.tolist(), live[:, 1:].tolist(), strict=True):",
        "for old, total, tokens in zip(unpaid, sums.tolist(), live[:, 1:].tolist(), strict=True):")
replace("(total / n**length_penalty, tokens[:-1])", "(old / n**length_penalty, tokens[:-1])")

# %% length-penalty-ignored
"""Your result does not depend on length_penalty: the sums are compared as they are."""
replace("memory = model.encode(src, src_padding)", """length_penalty = 0.0
    memory = model.encode(src, src_padding)""")

# %% logits-summed
"""You add up logits. They are log-probabilities only after log_softmax: another constant in every step, so
hypotheses cannot be compared."""
replace("[:, -1].log_softmax(-1)", "[:, -1]")
replace("if not len(live) or sums[0].item() / hope < best[0]:", "if not len(live):")

# %% finished-forgotten
"""A hypothesis that has ended disappears from your search, so the result never has an end: put finished ones aside
and let them compete."""
replace("best: tuple[float, list[int]] = (-math.inf, [])", "best = unfinished = (-math.inf, [])")
replace("best = max(best, (total / n**length_penalty, tokens))",
        "unfinished = max(unfinished, (total / n**length_penalty, tokens))")
replace("if not len(live) or sums[0].item() / hope < best[0]:", "if not len(live):")
replace("return best", "return unfinished if unfinished[1] else best")

# %% unfinished-ignored price=0.2
"""A hypothesis that runs into max_len without EOS competes too, with the score of what it has. You look at finished
ones only."""
replace("elif n == max_len:", "elif n == max_len and best[0] == -math.inf:")
replace("if not len(live) or sums[0].item() / hope < best[0]:", "if not len(live):")

# %% greedy-lost price=0.2
"""A beam may drop greedy's hypothesis on the way and end with a worse one. Let greedy's hypothesis compete in the
end."""
replace("{1, width}", "{width}")

# %% finished-ones-extended
"""Hypotheses go on behind their EOS in your search, and every further word costs. One that ends in EOS leaves the
beam."""
replace("best = max(best, (total / n**length_penalty, tokens[:-1]))", "pass")
replace("""elif n == max_len:
                best = max(best, (total / n**length_penalty, tokens))""",
        """if n == max_len:
                cut = tokens[: tokens.index(eos_id)] if eos_id in tokens else tokens
                best = max(best, (total / n**length_penalty, cut))""")
replace("live, sums = live[~ended], sums[~ended]", "")

# %% beam-filled-up price=0.3
"""At width 1 your search goes on after greedy has ended: a place that a finished hypothesis leaves is filled with
the next best. Then width 1 is not greedy."""
replace("{1, width}", "{width}")
replace("topk(min(width, K * V))", "topk(min(2 * width, K * V))")
replace("live, sums = live[~ended], sums[~ended]", "live, sums = live[~ended][:width], sums[~ended][:width]")

# %% memory-of-another-sentence
"""Right for one sentence, wrong in a batch: your beams stand sentence by sentence, and the memory is repeated batch
by batch. repeat and repeat_interleave order their copies differently."""
replace("one = (memory[b : b + 1], None if src_padding is None else src_padding[b : b + 1])",
        """rows = [(b * width + w) % len(src) for w in range(width)]  # as `memory.repeat(width, 1, 1)` has them
        one = (memory[rows], None if src_padding is None else src_padding[rows])""")
replace("{1, width}", "{width}")
replace("padding.expand(K, -1)", "padding[:K]")
replace("memory.expand(K, -1, -1)", "memory[:K]")

# %% beam-not-masked
"""More padding behind a sentence changes its translation: src_padding is lost on the way to decode."""
replace("mask = None if padding is None else padding.expand(K, -1)", "mask = None")

# %% penalty-of-wu price=0.2
"""You divide by ((5 + n) / 6) to the power of length_penalty, as Wu and others do. Here the sum is divided by n to that
power, with n the number of its terms."""
replace("(total / n**length_penalty, tokens[:-1])", "(total / ((5 + n) / 6) ** length_penalty, tokens[:-1])")
replace("(total / n**length_penalty, tokens))", "(total / ((5 + n) / 6) ** length_penalty, tokens))")
replace("if not len(live) or sums[0].item() / hope < best[0]:", "if not len(live):")

# %% always-the-mean price=0.2
"""Your scores are the same for every length_penalty: you divide by the number of terms, and not by its power."""
replace("memory = model.encode(src, src_padding)", """length_penalty = 1.0
    memory = model.encode(src, src_padding)""")

# %% one-word-for-each-beginning
"""Every beginning of yours keeps its one best word. The `width` best of *all* extensions live on: two of them may
come from one beginning, and another beginning may die."""
replace("sums, places = (sums[:, None] + logp).flatten().topk(min(width, K * V))",
        """grown = sums[:, None] + logp
        sums, places = grown.flatten().topk(min(width, V)) if n == 1 else grown.max(1)
        places = places if n == 1 else places + V * torch.arange(K, device=places.device)""")

# %% copies-at-the-start
"""Your beam begins with `width` copies of BOS, and they all grow the same words: the search is no wider than greedy.
Begin with one beginning."""
replace("live = torch.full((1, 1), bos_id, device=memory.device)",
        "live = torch.full((width, 1), bos_id, device=memory.device)")
replace("sums = memory.new_zeros(1)", "sums = memory.new_zeros(width)")

# %% stops-with-the-first-end
"""Your search stops as soon as one hypothesis has ended. Others are still alive, and may end with a better score."""
replace("if not len(live) or sums[0].item() / hope < best[0]:", "if not len(live) or bool(ended.any()):")
replace("elif n == max_len:", "else:")
replace("best = max(best, (total / n**length_penalty, tokens))", """if n == max_len or bool(ended.any()):
                    best = max(best, (total / n**length_penalty, tokens))""")

# %% penalty-multiplied
"""You multiply the sum by n to the power of length_penalty. It is divided: with a penalty of 1 the score is the mean
for each token."""
replace("(total / n**length_penalty, tokens[:-1])", "(total * n**length_penalty, tokens[:-1])")
replace("(total / n**length_penalty, tokens))", "(total * n**length_penalty, tokens))")
replace("if not len(live) or sums[0].item() / hope < best[0]:", "if not len(live):")

# %% finished-by-their-sums
"""Unfinished hypotheses compete with their score, and finished ones with their plain sum. The same score is for all."""
replace("(total / n**length_penalty, tokens[:-1])", "(total, tokens[:-1])")
replace("if not len(live) or sums[0].item() / hope < best[0]:", "if not len(live):")

# %% mask-of-the-first-row
"""Every sentence gets the padding of the first one: row b of src_padding belongs to sentence b."""
replace("None if src_padding is None else src_padding[b : b + 1])", "None if src_padding is None else src_padding[:1])")

# %% score-of-the-width price=0.3
"""You rank the beam by score, length penalty and all, while it grows, and your sums are divided again and again. Sums
decide who lives on; scores are for the end."""
replace("live, sums = live[~ended], sums[~ended]", "live, sums = live[~ended], sums[~ended] / n**length_penalty")
replace("if not len(live) or sums[0].item() / hope < best[0]:", "if not len(live):")
