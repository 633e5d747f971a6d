# %% logsumexp
"""By hand with logsumexp and diagonals."""
def info_nce(a, b, temperature=0.1):
    a = a / a.norm(dim=1, keepdim=True)
    b = b / b.norm(dim=1, keepdim=True)
    s = torch.einsum("id,jd->ij", a, b) / temperature
    d = torch.diagonal(s)
    return 0.5 * ((s.logsumexp(dim=1) - d).mean() + (s.logsumexp(dim=0) - d).mean())

def task_kind(task):
    if task in {"masked words", "next word", "fill the gap of a span"}:
        return "generative"
    if task in {"next sentence", "sentence order", "which caption belongs to which image"}:
        return "contrastive"
    raise ValueError(task)


# %% cosine-similarity
"""Cosines by torch's own function, log_softmax over both axes."""
def info_nce(a, b, temperature=0.1):
    s = F.cosine_similarity(a[:, None], b[None], dim=-1) / temperature
    return -(s.log_softmax(0) + s.log_softmax(1)).diagonal().mean() / 2


# %% row-by-row
"""A loop over rows; each side asks in turn; match for the kinds."""
def info_nce(a, b, temperature=0.1):
    a, b = a * a.pow(2).sum(-1, keepdim=True).rsqrt(), b * b.pow(2).sum(-1, keepdim=True).rsqrt()
    losses = []
    for x, y in ((a, b), (b, a)):
        for i in range(x.shape[0]):
            scores = (y @ x[i]) / temperature
            losses.append(torch.logsumexp(scores, 0) - scores[i])
    return torch.stack(losses).mean()

def task_kind(task):
    match task:
        case "masked words" | "next word" | "fill the gap of a span":
            return "generative"
        case "next sentence" | "sentence order" | "which caption belongs to which image":
            return "contrastive"
        case _:
            raise ValueError(f"unknown: {task}")
