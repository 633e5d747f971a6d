# %% list-of-candidates
"""All candidates of each sentence are listed, then one is drawn, always; the coin falls afterwards."""
def sentence_pairs(documents, rng):
    result = []
    for d in range(len(documents)):
        for i in range(len(documents[d]) - 1):
            follows = documents[d][i + 1]
            candidates = [s for e in range(len(documents)) if e != d for s in documents[e] if s != follows]
            if not candidates:
                raise ValueError("nothing to draw")
            wrong = candidates[rng.randrange(len(candidates))]
            coin = bool(rng.getrandbits(1))
            result.append((documents[d][i], follows if coin else wrong, coin))
    return result

def pack(first, second, cls_id, sep_id, max_len):
    room = max_len - 3
    if room < 0:
        raise ValueError("max_len must be at least 3")
    a, b = len(first), len(second)
    if a + b > room:  # who is shorter than half keeps everything
        a, b = (a, room - a) if a <= (room + 1) // 2 and a < b else (room - b, b) if b <= room // 2 else ((room + 1) // 2, room // 2)
    ids = [cls_id] + list(first[:a]) + [sep_id] + list(second[:b]) + [sep_id]
    return ids, [0] * (a + 2) + [1] * (b + 1)


# %% document-first
"""A document is drawn, then a sentence of it: other weights, and just as right; candidates are found before the coin."""
def sentence_pairs(documents, rng):
    pairs = []
    for d, document in enumerate(documents):
        for first, follows in zip(document, document[1:], strict=False):
            usable = {e: [s for s in other if s != follows] for e, other in enumerate(documents) if e != d}
            usable = {e: rest for e, rest in usable.items() if rest}
            if not usable:
                raise ValueError("no candidate")
            if rng.uniform(0, 1) < 0.5:
                pairs.append((list(first), list(follows), True))
            else:
                pairs.append((list(first), list(rng.choice(usable[rng.choice(sorted(usable))])), False))
    return pairs


# %% rejection-over-places
"""Places of all sentences in one list, drawn until one fits; whether one fits is asked of a set of contents per document."""
def sentence_pairs(documents, rng):
    places = [(d, i) for d, document in enumerate(documents) for i in range(len(document))]
    contents = [set(map(tuple, document)) for document in documents]
    pairs = []
    for d, i in places:
        if i + 1 == len(documents[d]):
            continue
        follows = documents[d][i + 1]
        if not any(c - {tuple(follows)} for e, c in enumerate(contents) if e != d):
            raise ValueError(f"no wrong second for sentence {i} of document {d}")
        if rng.choice([True, False]):
            pairs.append((documents[d][i], follows, True))
            continue
        while True:
            e, j = rng.choice(places)
            if e != d and documents[e][j] != follows:
                break
        pairs.append((documents[d][i], documents[e][j], False))
    return pairs

def pack(first, second, cls_id, sep_id, max_len):
    if max_len < 3:
        raise ValueError("too small")
    first, second = tuple(first), tuple(second)
    for _ in range(max(0, len(first) + len(second) + 3 - max_len)):
        if len(first) > len(second):
            first = first[:-1]
        else:
            second = second[:-1]
    ids, segments = [cls_id], [0]
    for part, segment in ((first, 0), (second, 1)):
        for token in (*part, sep_id):
            ids.append(token)
            segments.append(segment)
    return ids, segments
