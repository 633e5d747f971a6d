# %% source-and-target-swapped
"""Your encoder has the target's length: M is the source, which the encoder reads, and N the target."""
def stack_costs(M, N, k):
    def cost(T, S):
        projections = 2 * (T + S + S + T) * k * k
        products = 2 * 2 * T * S * k
        return projections + products

    return {"encoder_self": cost(N, N), "decoder_self": cost(M, M), "cross": cost(N, M)}


# %% masked-half-saved
"""You take half of the decoder's scores for free. The blocked ones are computed and then thrown away: a mask saves
nothing."""
def stack_costs(M, N, k):
    def cost(T, S):
        projections = 2 * (T + S + S + T) * k * k
        products = 2 * 2 * T * S * k
        return projections + products

    return {"encoder_self": cost(M, M), "decoder_self": cost(N, N) - 2 * N * N * k, "cross": cost(N, M)}


# %% projections-forgotten
"""You count the two products with the scores and leave out the four projections. They are matrix products too."""
def stack_costs(M, N, k):
    def cost(T, S):
        return 2 * 2 * T * S * k

    return {"encoder_self": cost(M, M), "decoder_self": cost(N, N), "cross": cost(N, M)}


# %% multiply-adds-not-doubled
"""Your counts are half of what is asked: a multiply-add counts as 2, as in 2.5."""
def stack_costs(M, N, k):
    def cost(T, S):
        projections = (T + S + S + T) * k * k
        products = 2 * T * S * k
        return projections + products

    return {"encoder_self": cost(M, M), "decoder_self": cost(N, N), "cross": cost(N, M)}


# %% cross-projects-the-target-only
"""In cross-attention you project N rows four times. Keys and values come from the memory, which has M."""
def stack_costs(M, N, k):
    def cost(T, S):
        projections = 2 * (T + S + S + T) * k * k
        products = 2 * 2 * T * S * k
        return projections + products

    return {"encoder_self": cost(M, M), "decoder_self": cost(N, N), "cross": 8 * N * k * k + 4 * N * M * k}


# %% cross-sees-both
"""Your cross-attention has M + N keys. The target's words ask, and only the source's answer: a table of N times M
scores."""
def stack_costs(M, N, k):
    def cost(T, S):
        projections = 2 * (T + S + S + T) * k * k
        products = 2 * 2 * T * S * k
        return projections + products

    return {"encoder_self": cost(M, M), "decoder_self": cost(N, N), "cross": cost(N, M + N)}


# %% width-forgotten
"""Every score is a dot product over the width: your two products lack the factor k."""
def stack_costs(M, N, k):
    def cost(T, S):
        projections = 2 * (T + S + S + T) * k * k
        products = 2 * 2 * T * S
        return projections + products

    return {"encoder_self": cost(M, M), "decoder_self": cost(N, N), "cross": cost(N, M)}


# %% encoder-counted-again
"""The encoder's output is at hand, and it does not depend on the target language: its cost is not paid again."""
def extra_cost_for_second_language(M, N, k):
    costs = stack_costs(M, N, k)
    return sum(costs.values())


# %% cross-taken-as-known
"""A second language asks the memory anew: its cross-attention has to be computed as well, not only its self-
attention."""
def extra_cost_for_second_language(M, N, k):
    costs = stack_costs(M, N, k)
    return costs["decoder_self"]


# %% memory-projections-taken-as-known
"""You leave out the memory's keys and values. What is at hand is the encoder's output; the second decoder projects
it with weights of its own."""
def extra_cost_for_second_language(M, N, k):
    costs = stack_costs(M, N, k)
    return costs["decoder_self"] + costs["cross"] - 4 * M * k * k
