# %% times-temperature price=0.25
"""You multiply by the temperature. A high one should flatten the distribution: divide."""
replace("(ranked - ranked[..., :1]) / temperature", "(ranked - ranked[..., :1]) * temperature")

# %% crossing-token-lost price=0.25
"""One token too few with top_p: the one that crosses the edge belongs to the set, otherwise it has less than top_p."""
replace("before = p.cumsum(-1) - p  # the weight of all that are likelier", "before = p.cumsum(-1)")
replace("p = p.masked_fill(before >= top_p, 0.0)", "p = p.masked_fill((before > top_p) & (before > p[..., :1]), 0.0)")

# %% one-token-too-many price=0.2
"""One token too many with top_p where the set before it has exactly top_p already: at least top_p is enough."""
replace("before >= top_p", "before > top_p")

# %% top-p-before-top-k price=0.2
"""With both settings too many tokens stay: top_p is meant after top_k, of probabilities that sum to 1 again."""
replace("""        p = torch.cat([p[..., :top_k], torch.zeros_like(p[..., top_k:])], dim=-1)
        p = p / p.sum(-1, keepdim=True)""",
        "        p = torch.cat([p[..., :top_k], torch.zeros_like(p[..., top_k:])], dim=-1)")
replace("return torch.zeros_like(p).scatter(-1, ids, p)", "return torch.zeros_like(p).scatter(-1, ids, p / p.sum(-1, keepdim=True))")

# %% top-p-before-temperature price=0.2
"""The set of top_p is chosen from the probabilities without temperature. It comes after temperature."""
replace("before = p.cumsum(-1) - p  # the weight of all that are likelier",
        "q = torch.softmax(ranked, -1)\n        before = q.cumsum(-1) - q")

# %% equals-all-kept price=0.25
"""Equal logits give more than k tokens: you keep all that are as large as the k-th. Of equals the lower ids stay."""
replace("p = torch.cat([p[..., :top_k], torch.zeros_like(p[..., top_k:])], dim=-1)",
        "p = p.masked_fill(ranked < ranked[..., min(top_k, ranked.shape[-1]) - 1, None], 0.0)")

# %% higher-id-stays price=0.2
"""Of equal tokens at the edge the higher id stays: sort so that equals keep their order."""
replace("ranked, ids = torch.sort(logits, dim=-1, descending=True, stable=True)",
        "ranked, ids = (x.flip(-1) for x in torch.sort(logits, dim=-1, stable=True))")

# %% not-put-back price=0.7
"""The probabilities come back in the order of their size: put each where its token was."""
replace("return torch.zeros_like(p).scatter(-1, ids, p)", "return p")

# %% not-normed-again price=0.25
"""What is kept does not sum to 1: divide by its sum after removing the rest."""
replace("""        p = p.masked_fill(before >= top_p, 0.0)
        p = p / p.sum(-1, keepdim=True)""", "        p = p.masked_fill(before >= top_p, 0.0)")
replace("""dim=-1)
        p = p / p.sum(-1, keepdim=True)""", "dim=-1)")

# %% zero-shared-by-equals price=0.2
"""At temperature 0 several equal logits share the weight. All of it goes to the first of them."""
replace("return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)",
        "best = (logits == logits.amax(-1, keepdim=True)).to(logits.dtype)\n        return best / best.sum(-1, keepdim=True)")

# %% unchecked-at-zero price=0.1
"""At temperature 0 a bad top_k or top_p passes: check the arguments before anything else."""
replace("    if temperature < 0:", """    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    if temperature < 0:""")

# %% overflow price=0.2
"""Large logits at a low temperature give NaN: subtract the largest before you exponentiate."""
replace("p = torch.softmax((ranked - ranked[..., :1]) / temperature, dim=-1)",
        "p = torch.exp(ranked / temperature)\n    p = p / p.sum(-1, keepdim=True)")

# %% small-numbers-for-zero price=0.2
"""What is not kept has a tiny probability instead of 0: over a long text even those are drawn."""
replace("p = p.masked_fill(before >= top_p, 0.0)", "p = p.masked_fill(before >= top_p, 1e-8)")
replace("torch.zeros_like(p[..., top_k:])", "torch.full_like(p[..., top_k:], 1e-8)")

# %% first-row-decides price=0.3
"""The first row decides for all rows which tokens stay. Each row has its own set."""
replace("before >= top_p, 0.0", "(before >= top_p).reshape(-1, p.shape[-1])[0], 0.0")

# %% float32-inside price=0.15
"""Nearly right: somewhere inside you compute in float32 (`.float()`, or a tensor of torch's default dtype). float64 in, float64 out."""
replace("torch.sort(logits, dim", "torch.sort(logits.float(), dim")
replace("return torch.zeros_like(p).scatter(-1, ids, p)", "return torch.zeros_like(p).scatter(-1, ids, p).to(logits.dtype)")

# %% top-p-1-refused price=0.1
"""top_p=1 is refused, and it is allowed: it removes nothing."""
replace("not 0 < top_p <= 1", "not 0 < top_p < 1")

# %% a-little-left price=0.15
"""Tokens that are not kept have a tiny probability left. They get exactly 0."""
replace("before >= top_p, 0.0", "before >= top_p, 1e-9")
