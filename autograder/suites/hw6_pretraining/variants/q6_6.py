# %% who-and-when
"""Is it the same story's next but one, or another's? And: which of two sentences came first?"""
def my_tasks():
    def earlier(documents, rng):
        out = []
        for d in documents:
            if len(d) < 2:
                continue
            i, j = sorted(rng.sample(range(len(d)), 2))
            flip = rng.choice([False, True])
            out.append((list(d[j]), list(d[i]), False) if flip else (list(d[i]), list(d[j]), True))
        return out

    def skip(documents, rng):
        out = []
        for n, d in enumerate(documents):
            if len(d) >= 2:
                i = rng.randrange(len(d))
                j = (i + 2) % len(d) if len(d) > 2 else 1 - i
                same = rng.random() < 0.5
                other = documents[(n + 1 + rng.randrange(len(documents) - 1)) % len(documents)] if len(documents) > 1 else d
                out.append((list(d[i]), list(d[j] if same else rng.choice(other)), same))
        return out

    return earlier, skip


# %% swapped-endings
"""Do these halves belong to one sentence? And sentence order, exactly balanced."""
def my_tasks():
    def halves(documents, rng):
        pool = [s for d in documents for s in d if len(s) > 1]
        examples = []
        for d in documents:
            for s in d:
                cut = len(s) // 2
                if rng.random() < 0.5:
                    examples.append((list(s[:cut]), list(s[cut:]), True))
                else:
                    other = rng.choice(pool)
                    examples.append((list(s[:cut]), list(other[len(other) // 2:]), False))
        return examples

    def order(documents, rng):
        pairs = [(d[i], d[i + 1]) for d in documents for i in range(len(d) - 1)]
        coins = [i % 2 == 0 for i in range(len(pairs))]
        rng.shuffle(coins)
        return [(list(a), list(b), True) if c else (list(b), list(a), False) for (a, b), c in zip(pairs, coins, strict=True)]

    return halves, order


# %% two-against-one
"""Three sentences: do the first two and the third come from one story? And: is the second the one before?"""
class _Before:
    def __call__(self, documents, rng):
        found = []
        for document in documents:
            for i in range(1, len(document)):
                turn = bool(rng.randint(0, 1))
                a, b = document[i], document[i - 1]
                found.append((list(b), list(a), False) if turn else (list(a), list(b), True))
        return found

def _company(documents, rng):
    found = []
    for document in documents:
        if len(document) < 2:
            continue
        rest = rng.sample(range(len(document)), len(document))
        a, last = [document[i] for i in rest[:-1][:2]], document[rest[-1]]
        label = rng.random() > 0.5
        if not label:
            last = rng.choice(documents[rng.randrange(len(documents))])
        found.append(([t for s in a for t in s], list(last), label))
    return found

def my_tasks():
    return [_Before(), _company]
