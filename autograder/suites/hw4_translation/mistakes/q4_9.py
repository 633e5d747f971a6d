# %% source-and-target-swapped
"""Your encoder has the target's length: M is the source, which the encoder reads, and N the target."""
replace('"encoder_self": cost(M, M), "decoder_self": cost(N, N)',
        '"encoder_self": cost(N, N), "decoder_self": cost(M, M)')

# %% masked-half-saved price=0.2
"""You take half of the decoder's scores for free. The blocked ones are computed and then thrown away: a mask saves
nothing."""
replace("cost(N, N)", "cost(N, N) - 2 * N * N * k")

# %% projections-forgotten
"""You count the two products with the scores and leave out the four projections. They are matrix products too."""
replace("4 * (T + S) * k**2 + 4 * T * S * k", "4 * T * S * k")

# %% multiply-adds-not-doubled price=0.2
"""Your counts are half of what is asked: a multiply-add counts as 2."""
replace("4 * (T + S) * k**2 + 4 * T * S * k", "2 * (T + S) * k**2 + 2 * T * S * k")

# %% cross-projects-the-target-only
"""In cross-attention you project N rows four times. Keys and values come from the memory, which has M."""
replace("cost(N, M)", "8 * N * k * k + 4 * N * M * k")

# %% cross-sees-both
"""Your cross-attention has M + N keys. The target's words ask, and only the source's answer: a table of N times M
scores."""
replace("cost(N, M)", "cost(N, M + N)")

# %% width-forgotten price=0.3
"""Every score is a dot product over the width: your two products lack the factor k."""
replace("4 * T * S * k", "4 * T * S")

# %% encoder-counted-again
"""The encoder's output is at hand, and it does not depend on the target language: its cost is not paid again."""
replace('costs["decoder_self"] + costs["cross"]', "sum(costs.values())")

# %% cross-taken-as-known
"""A second language asks the memory anew: its cross-attention has to be computed as well, not only its self-
attention."""
replace('costs["decoder_self"] + costs["cross"]', 'costs["decoder_self"]')

# %% memory-projections-taken-as-known
"""You leave out the memory's keys and values. What is at hand is the encoder's output; the second decoder projects
it with weights of its own."""
replace('costs["decoder_self"] + costs["cross"]', 'costs["decoder_self"] + costs["cross"] - 4 * M * k * k')

# %% decoder-halved
"""Your decoder's self-attention costs half: the causal mask hides half of the scores, and saves nothing of the work.
They are computed and then thrown away, and the projections are needed anyway."""
replace("cost(N, N)", "cost(N, N) // 2")

# %% three-projections-of-the-queries
"""In cross-attention you project the target three times and the memory once. Queries and outputs come from the
target, keys and values both from the memory."""
replace("4 * (T + S) * k**2 + 4 * T * S * k", "(6 * T + 2 * S) * k**2 + 4 * T * S * k")
