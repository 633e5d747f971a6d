# %% scores-on-numbers
"""Your outputs are token numbers and your references are words, so nothing ever matches. Turn the outputs into
words first."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN):
    if source is None or target is None:
        source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(a) for a, _ in pairs], PAD)
    outputs = [[str(i) for i in ids] for ids in translate(model, greedy_decode, src, src_padding, max_len)]
    references = [b for _, b in pairs]
    return {
        "exact": exact_match(outputs, references),
        "bleu": bleu(outputs, references),
        "chrf": chrf(outputs, references),
    }


# %% bleu-on-numbers
"""Exact match is right, and chrF is not: you let it compare the digits of token numbers. BLEU and chrF are for the
words."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN):
    if source is None or target is None:
        source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(a) for a, _ in pairs], PAD)
    outputs = [target.decode(ids) for ids in translate(model, greedy_decode, src, src_padding, max_len)]
    references = [b for _, b in pairs]

    def numbers(sentences):
        return [[str(i) for i in target.encode(words)] for words in sentences]

    return {
        "exact": exact_match(outputs, references),
        "bleu": bleu(numbers(outputs), numbers(references)),
        "chrf": chrf(numbers(outputs), numbers(references)),
    }


# %% exact-per-token
"""Your exact match is the share of right tokens. A translation counts only as a whole, right to the last token."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN):
    if source is None or target is None:
        source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(a) for a, _ in pairs], PAD)
    outputs = [target.decode(ids) for ids in translate(model, greedy_decode, src, src_padding, max_len)]
    references = [b for _, b in pairs]
    return {
        "exact": sum(x == y for a, b in zip(outputs, references, strict=True) for x, y in zip(a, b, strict=False)) / sum(map(len, references)),
        "bleu": bleu(outputs, references),
        "chrf": chrf(outputs, references),
    }


# %% exact-in-percent
"""Your "exact" goes up to 100. It is a share, from 0 to 1; BLEU and chrF go up to 100."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN):
    if source is None or target is None:
        source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(a) for a, _ in pairs], PAD)
    outputs = [target.decode(ids) for ids in translate(model, greedy_decode, src, src_padding, max_len)]
    references = [b for _, b in pairs]
    return {
        "exact": 100 * exact_match(outputs, references),
        "bleu": bleu(outputs, references),
        "chrf": chrf(outputs, references),
    }


# %% scores-as-shares
"""Your BLEU and chrF go up to 1. sacrebleu's scale is asked for, from 0 to 100."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN):
    if source is None or target is None:
        source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(a) for a, _ in pairs], PAD)
    outputs = [target.decode(ids) for ids in translate(model, greedy_decode, src, src_padding, max_len)]
    references = [b for _, b in pairs]
    return {
        "exact": exact_match(outputs, references),
        "bleu": bleu(outputs, references) / 100,
        "chrf": chrf(outputs, references) / 100,
    }


# %% outputs-and-references-exchanged
"""You exchanged outputs and references. BLEU punishes short *outputs*, and chrF weighs recall more than precision:
the order matters."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN):
    if source is None or target is None:
        source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(a) for a, _ in pairs], PAD)
    outputs = [target.decode(ids) for ids in translate(model, greedy_decode, src, src_padding, max_len)]
    references = [b for _, b in pairs]
    return {
        "exact": exact_match(outputs, references),
        "bleu": bleu(references, outputs),
        "chrf": chrf(references, outputs),
    }


# %% mean-of-sentences
"""You average the BLEU and chrF of single sentences. They are scores of a whole set: the counts are added up
first."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN):
    if source is None or target is None:
        source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(a) for a, _ in pairs], PAD)
    outputs = [target.decode(ids) for ids in translate(model, greedy_decode, src, src_padding, max_len)]
    references = [b for _, b in pairs]
    return {
        "exact": exact_match(outputs, references),
        "bleu": sum(bleu([a], [b]) for a, b in zip(outputs, references, strict=True)) / len(pairs),
        "chrf": sum(chrf([a], [b]) for a, b in zip(outputs, references, strict=True)) / len(pairs),
    }


# %% teacher-forced
"""You let the model predict each next word behind the *right* words and call that its translation. Nobody knows the
right words when translating: decode."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN):
    if source is None or target is None:
        source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(a) for a, _ in pairs], PAD)
    inputs, labels = teacher_forcing([target.encode(b) for _, b in pairs], BOS, EOS, PAD)
    with torch.no_grad():
        best = model.eval()(src, inputs, src_padding).argmax(-1)
    outputs = [target.decode(ids[row != PAD].tolist()) for ids, row in zip(best, labels, strict=True)]
    references = [b for _, b in pairs]
    return {
        "exact": exact_match(outputs, references),
        "bleu": bleu(outputs, references),
        "chrf": chrf(outputs, references),
    }


# %% dropout-left-on
"""Scores of one model change from call to call: it comes in training mode, and you decode with its dropout on.
`translate` puts it into evaluation mode."""
def evaluate_translation(model, pairs, source=None, target=None, max_len=MAX_LEN):
    if source is None or target is None:
        source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(a) for a, _ in pairs], PAD)
    outputs = [target.decode(ids) for ids in greedy_decode(model, src, src_padding, BOS, EOS, max_len)]
    references = [b for _, b in pairs]
    return {
        "exact": exact_match(outputs, references),
        "bleu": bleu(outputs, references),
        "chrf": chrf(outputs, references),
    }
