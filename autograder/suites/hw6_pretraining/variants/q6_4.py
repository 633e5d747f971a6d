# %% ignore-index
"""Torch's own ignore_index with a sum, and a table of classes."""
def pretraining_loss(word_logits, pair_logits, labels, is_next):
    count = (labels != -100).sum()
    total = F.cross_entropy(word_logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
    words = total / torch.clamp(count, min=1)
    pairs = -pair_logits.log_softmax(-1).gather(1, torch.where(is_next, 0, 1)[:, None]).mean()
    return words + pairs, words, pairs

def reached(task):
    if task == "words":
        return {"token_embed", "position_embed", "segment_embed", "embed_norm", "layers", "mlm_dense", "mlm_norm", "mlm_bias"}
    if task == "pairs":
        return {"token_embed", "position_embed", "segment_embed", "embed_norm", "layers", "pooler", "nsp"}
    raise ValueError(task)


# %% by-gathering
"""Log-probabilities of all places, gathered, masked and summed; where nothing is chosen, zero times the logits."""
def pretraining_loss(word_logits, pair_logits, labels, is_next):
    mask = labels.ne(-100)
    if mask.any():
        logp = torch.log_softmax(word_logits, dim=2)
        right = logp.gather(2, labels.masked_fill(~mask, 0).unsqueeze(2)).squeeze(2)
        words = -(right * mask).sum() / mask.sum()
    else:
        words = (word_logits * 0).sum()
    logits = torch.where(is_next, pair_logits[:, 0], pair_logits[:, 1])
    pairs = (pair_logits.logsumexp(1) - logits).mean()
    return words + pairs, words, pairs

def reached(task):
    return {
        "words": set("token_embed position_embed segment_embed embed_norm layers mlm_dense mlm_norm mlm_bias".split()),
        "pairs": set("token_embed position_embed segment_embed embed_norm layers pooler nsp".split()),
    }[task] if task in ("words", "pairs") else _refuse(task)

def _refuse(task):
    raise ValueError(f"unknown task {task}")


# %% by-autograd
"""reached() asks a tiny BERT and autograd; the losses are nn.CrossEntropyLoss objects."""
def pretraining_loss(word_logits, pair_logits, labels, is_next):
    sums = nn.CrossEntropyLoss(ignore_index=-100, reduction="sum")
    words = sums(word_logits.transpose(1, 2), labels) / max(1, int((labels != -100).sum()))
    pairs = nn.CrossEntropyLoss()(pair_logits, 1 - is_next.long())
    return words + pairs, words, pairs

def reached(task):
    if task not in ("words", "pairs"):
        raise ValueError("words or pairs")
    first = {"token_embed", "position_embed", "segment_embed"} | {"embed_norm", "layers"}
    return frozenset(first | ({"mlm_dense", "mlm_norm", "mlm_bias"} if task == "words" else {"pooler", "nsp"}))
