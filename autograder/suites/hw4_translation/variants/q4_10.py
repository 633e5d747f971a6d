# %% sacrebleu-itself
"""sacrebleu called directly with its defaults, on joined words; sentences decoded ten at a time."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN, size=10):
    import sacrebleu

    english, german = vocabularies()
    source, target = source or english, target or german
    device = next(model.parameters()).device
    mode = model.training
    model.eval()
    texts = []
    for i in range(0, len(pairs), size):
        src, src_padding = pad_batch([source.encode(a) for a, _ in pairs[i : i + size]], PAD)
        rows = greedy_decode(model, src.to(device), src_padding.to(device), BOS, EOS, max_len)
        texts += [" ".join(target.decode(row)) for row in rows]
    model.train(mode)
    right = [[" ".join(one) for one in several] for _, several in pairs]
    most = max(map(len, right))
    columns = [[several[i] if i < len(several) else several[-1] for several in right] for i in range(most)]
    return {
        "exact": sum(a in b for a, b in zip(texts, right, strict=True)) / len(right),
        "bleu": sacrebleu.corpus_bleu(texts, columns).score,
        "chrf": sacrebleu.corpus_chrf(texts, columns).score,
    }


# %% metric-objects
"""sacrebleu's metric classes; exact match as a 0-dim tensor."""
def evaluate_translation(model, pairs):
    from sacrebleu.metrics import BLEU, CHRF

    source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(a) for a, _ in pairs], PAD)
    ids = translate(model, greedy_decode, src, src_padding)
    same = torch.tensor([any(target.decode(row) == list(one) for one in b) for row, (_, b) in zip(ids, pairs, strict=True)])
    outputs = [" ".join(target.decode(row)) for row in ids]
    most = max(len(b) for _, b in pairs)
    references = [[" ".join(b[i % len(b)]) for _, b in pairs] for i in range(most)]  # again from the first
    return {
        "exact": same.double().mean(),
        "bleu": BLEU(tokenize="none", force=True).corpus_score(outputs, references).score,
        "chrf": CHRF().corpus_score(outputs, references).score,
    }


# %% one-by-one
"""Each sentence alone, without any padding; further numbers in the dict do no harm."""
def evaluate_translation(model, pairs, vocabulary=None, steps=MAX_LEN):
    source, target = vocabulary or vocabularies()
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    outputs, references = [], []
    for words, right in pairs:
        src = torch.tensor([source.encode(words)], device=device)
        (ids,) = greedy_decode(model, src, torch.zeros_like(src, dtype=torch.bool), BOS, EOS, steps)
        outputs.append(target.decode(ids))
        references.append([list(one) for one in right])
    model.train(was_training)
    hits = sum(output in several for output, several in zip(outputs, references, strict=True))
    scores = {"exact": hits / len(pairs), "bleu": bleu(outputs, references), "chrf": chrf(outputs, references)}
    return {**scores, "sentences": len(pairs)}


# %% sorted-by-length
"""Sorted by length before batching, so that little is padded, and put back in order afterwards."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN, size=16):
    if source is None or target is None:
        source, target = vocabularies()
    encoded = [source.encode(words) for words, _ in pairs]
    order = sorted(range(len(pairs)), key=lambda i: len(encoded[i]))
    outputs = [None] * len(pairs)
    for start in range(0, len(order), size):
        chunk = order[start : start + size]
        ids, mask = pad_batch([encoded[i] for i in chunk], PAD)
        for i, row in zip(chunk, translate(model, greedy_decode, ids, mask, max_len), strict=True):
            outputs[i] = target.decode(row)
    references = [several for _, several in pairs]
    measures = {"exact": exact_match, "bleu": bleu, "chrf": chrf}
    return {name: measure(outputs, references) for name, measure in measures.items()}
