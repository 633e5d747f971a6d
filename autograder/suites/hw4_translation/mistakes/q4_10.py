# %% scores-on-numbers
"""Your outputs are token numbers and your references are words, so nothing ever matches. Turn the outputs into
words first."""
replace("target.decode(ids)", "[str(i) for i in ids]")

# %% bleu-on-numbers
"""Exact match is right, and chrF is not: you let it compare the digits of token numbers. BLEU and chrF are for the
words."""
replace("return {",
        """def spelt(words):
        return [str(i) for i in target.encode(words)]

    a, b = [spelt(words) for words in outputs], [[spelt(words) for words in several] for several in references]
    return {""")
replace("bleu(outputs, references)", "bleu(a, b)")
replace("chrf(outputs, references)", "chrf(a, b)")

# %% exact-per-token
"""Your exact match is the share of right tokens. A translation counts only as a whole, right to the last token."""
replace("exact_match(outputs, references)",
        "sum(x == y for a, b in zip(outputs, references) for x, y in zip(a, b[0])) / sum(len(b[0]) for b in references)")

# %% exact-in-percent
"""Your "exact" goes up to 100. It is a share, from 0 to 1; BLEU and chrF go up to 100."""
replace("exact_match(outputs, references)", "100 * exact_match(outputs, references)")

# %% scores-as-shares
"""Your BLEU and chrF go up to 1. sacrebleu's scale is asked for, from 0 to 100."""
replace("bleu(outputs, references)", "bleu(outputs, references) / 100")
replace("chrf(outputs, references)", "chrf(outputs, references) / 100")

# %% outputs-and-references-exchanged
"""You exchanged outputs and references. BLEU punishes short *outputs*, and chrF weighs recall more than precision:
the order matters."""
replace("bleu(outputs, references)", "bleu([b[0] for b in references], [[a] for a in outputs])")
replace("chrf(outputs, references)", "chrf([b[0] for b in references], [[a] for a in outputs])")

# %% mean-of-sentences
"""You average the BLEU and chrF of single sentences. They are scores of a whole set: the counts are added up
first."""
replace("bleu(outputs, references)", "sum(bleu([a], [b]) for a, b in zip(outputs, references)) / len(pairs)")
replace("chrf(outputs, references)", "sum(chrf([a], [b]) for a, b in zip(outputs, references)) / len(pairs)")

# %% teacher-forced
"""You let the model predict each next word behind the *right* words and call that its translation. Nobody knows the
right words when translating: decode."""
replace("outputs = [target.decode(ids) for ids in translate(model, greedy_decode, src, src_padding, max_len)]",
        """inputs, labels = teacher_forcing([target.encode(b[0]) for _, b in pairs], BOS, EOS, PAD)
    with torch.no_grad():
        best = model.eval()(src, inputs, src_padding).argmax(-1)
    outputs = [target.decode(ids[row != PAD].tolist()) for ids, row in zip(best, labels, strict=True)]""")

# %% dropout-left-on
"""Scores of one model change from call to call: it comes in training mode, and you decode with its dropout on.
`translate` puts it into evaluation mode."""
replace("translate(model, greedy_decode, src, src_padding, max_len)",
        "greedy_decode(model, src, src_padding, BOS, EOS, max_len)")

# %% first-reference-only
"""You compare with the first reference of each sentence only. Where several translations are good, any of them is
right."""
replace("references = [several for _, several in pairs]", "references = [several[:1] for _, several in pairs]")

# %% every-reference-a-pair
"""You count each reference as a pair of its own, so that a sentence with three references counts three times and is
wrong for two of them. One output, one sentence: it is right if it is any of its references."""
replace("references = [several for _, several in pairs]",
        """outputs = [output for output, (_, several) in zip(outputs, pairs, strict=True) for _ in several]
    references = [[one] for _, several in pairs for one in several]""")
