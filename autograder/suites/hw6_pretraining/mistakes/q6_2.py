# %% successor-drawn-as-wrong price=0.25
"""Sometimes a pair with is_next=False is the true successor: another document has the same sentence, and you drew it. A wrong
second must differ from the successor."""
replace("while not is_next and second == follows:\n                second = rng.choice(others)", "if not is_next:\n                second = rng.choice(others)")

# %% from-the-same-document price=0.3
"""Your wrong seconds can come from the document itself. They must come from another one: a sentence of the same story is much
harder to tell, and is sometimes not wrong at all."""
replace("for e, other in enumerate(documents) if e != d for sentence in other]", "for other in documents for sentence in other]")

# %% only-if-the-coin-says-so price=0.15
"""Without a candidate you raise only where the coin asks for a wrong second, so the same data work in one run and fail in the next.
Look for a candidate before the coin is thrown."""
replace("if all(sentence == follows for sentence in others):", "coin = rng.random() < 0.5\n            if not coin and all(sentence == follows for sentence in others):")
replace("rng.random() < 0.5, follows", "coin, follows")

# %% equal-documents-are-one price=0.15
"""You leave out documents that are *equal* to the present one. Another document is another place in the list."""
replace("if e != d for sentence in other]", "if other != document for sentence in other]")

# %% always-next
"""All your pairs are right ones. Half of them should have a second sentence from another document."""
replace("rng.random() < 0.5, follows", "rng.random() < 2, follows")

# %% only-second-sentences price=0.25
"""Your wrong seconds are never the first sentence of a document. Every sentence of another document can be drawn."""
def sentence_pairs(documents, rng):
    pairs = []
    for d, document in enumerate(documents):
        for first, follows in zip(document, document[1:], strict=False):
            wrong = [s for e, other in enumerate(documents) if e != d for s in other[1:] if s != follows]
            if not wrong:
                raise ValueError("no candidate")
            coin = rng.random() < 0.5
            pairs.append((first, follows if coin else rng.choice(wrong), coin))
    return pairs

# %% first-sep-in-the-second-segment price=0.25
"""The first [SEP] has segment 1. It ends the first sentence, and belongs to segment 0."""
replace("[0] * (len(first) + 2) + [1] * (len(second) + 1)", "[0] * (len(first) + 1) + [1] * (len(second) + 2)")

# %% second-is-cut-alone price=0.25
"""Only the second sentence is cut, until nothing is left of it. Take the last token of the longer one, again and again."""
replace("(first if len(first) > len(second) else second).pop()", "(second or first).pop()")

# %% first-where-equal price=0.15
"""Where both sentences are equally long you cut the first. It is the second's turn then."""
replace("len(first) > len(second) else", "len(first) >= len(second) and first else")

# %% cut-at-the-front price=0.2
"""You take the first token of the longer sentence away. The last one goes."""
replace(".pop()", ".pop(0)")

# %% no-check-of-max-len price=0.1
"""max_len below 3 has no room for the special tokens, and is a ValueError."""
replace("if max_len < 3:", "if False:")
replace("while len(first) + len(second) + 3 > max_len:", "while len(first) + len(second) + 3 > max_len and (first or second):")

# %% chance-from-elsewhere price=0.2
"""The same rng gives other pairs: part of the chance comes from `random` itself. Every draw is `rng.` something."""
replace("second = rng.choice(others)", "second = random.choice(others)")

# %% only-the-next-document price=0.25
"""Your wrong seconds come from one document alone, the next in the list. Every sentence of every other document can be drawn."""
replace("others = [sentence for e, other in enumerate(documents) if e != d for sentence in other]",
        "others = list(documents[(d + 1) % len(documents)]) if len(documents) > 1 else []")

# %% only-first-sentences price=0.25
"""Your wrong seconds are always the first sentence of a document. Every sentence of another document can be drawn."""
replace("if e != d for sentence in other]", "if e != d for sentence in other[:1]]")

# %% room-for-two price=0.2
"""The result is one token too long: you leave room for two special tokens, and there are three, [CLS] and two [SEP]."""
replace("len(second) + 3 > max_len", "len(second) + 2 > max_len")
