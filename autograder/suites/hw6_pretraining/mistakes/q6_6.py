# %% next-sentence-again price=0.35
"""Your first task is next-sentence prediction. Ask for another relation."""
replace("first, second = pair if label else pair[::-1]", "first, second = pair if label else (pair[0], rng.choice([s for d in documents[:20] if d is not document for s in d]))")

# %% one-task-twice price=0.4
"""Both tasks are the same. Two relations are asked for."""
replace("return told_in_order, same_story", "return told_in_order, told_in_order")

# %% labels-reversed price=0.35
"""The second task is the first with its labels reversed: that is one task."""
replace("return told_in_order, same_story", "return told_in_order, lambda documents, rng: [(a, b, not label) for a, b, label in told_in_order(documents, rng)]")

# %% shuffled-words price=0.3
"""Your wrong examples have their words in disorder and a word twice: `second` alone tells the label. Both labels should be made of the
same material."""
replace("first, second = pair if label else pair[::-1]", "first, second = pair if label else (pair[0], [*pair[1], pair[1][0], pair[1][0]])")

# %% mostly-one-label price=0.2
"""Nine of ten labels are the same. Keep both between 35 and 65 percent, or always saying the same wins."""
replace("label = rng.random() < 0.5\n                first, second = pair", "label = rng.random() < 0.9\n                first, second = pair")

# %% not-from-rng price=0.2
"""Your tasks draw from Python's own random numbers: from the same rng they give something else each time."""
replace("label = rng.random() < 0.5\n                first, second = pair", "label = random.random() < 0.5\n                first, second = pair")

# %% cut-short price=0.25
"""Wrong examples are shorter: the lengths tell the label."""
replace("first, second = pair if label else pair[::-1]", "first, second = pair if label else (pair[1][:-3], pair[0][:-3])")

# %% one-example-for-many price=0.2
"""There are fewer examples than documents. Every document with two sentences gives at least one."""
replace("for document in documents:\n            for pair in", "for document in documents[::9]:\n            for pair in")

# %% documents-changed price=0.2
"""Your task shuffles the documents themselves. Work on copies: others still need them."""
replace("for document in documents:\n            for _ in range", "for document in documents:\n            rng.shuffle(document)\n            for _ in range")
