"""Public checks of q6_10: sample. The model is an Echo (course_utils.hw6.echo), so that no GPT is needed."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same
from course_utils.hw6.echo import echo, echo_weights
from course_utils.hw6.writing_runs import from_one_generator, write_with_echo

V, D, MAX = 9, 6, 20
PROMPTS = [[3, 1, 4], [2], [5, 6, 2, 3, 5, 8], [7, 7]]


def _weights(size=1.5):
    return echo_weights(610, V, D, MAX, size)


def _write(sample, n=5, prompts=None, seeds=(), weights=None, **options):
    given = [list(prompt) for prompt in (PROMPTS if prompts is None else prompts)]
    how = {key: options.pop(key) for key in ("training", "dropout") if key in options}
    return run_beside(write_with_echo, sample, weights or _weights(), given, n, options, list(seeds), *how.values())


def _greedy(prompt, n):
    """One prompt alone, everything computed again for each token."""
    model, row = echo(_weights()), list(prompt)
    with torch.no_grad():
        for _ in range(n):
            row.append(int(model(torch.tensor([row]))[0, -1].argmax()))
    return row


def _result(told, n=5, prompts=PROMPTS):
    check(told["error"] is None, f"sample raises a {(told['error'] or ['?'])[0]}")
    (rows,) = told["results"]
    check(isinstance(rows, list) and len(rows) == len(prompts), f"the result should be a list of {len(prompts)} lists")
    for row, prompt in zip(rows, prompts, strict=True):
        check(
            isinstance(row, list) and all(type(token) is int for token in row),
            f"{row!r:.60} is not a list of Python ints",
        )
        check(row[: len(prompt)] == prompt, f"the result for {prompt} does not begin with it: {row}")
        check(len(row) == len(prompt) + n, f"the result for {prompt} has {len(row) - len(prompt)} more tokens, not {n}")
    return rows


def test_form(sample):
    """Each result is its prompt and n more tokens, as Python ints; n = 0 gives the prompts; prompts are as before."""
    # keeps: form, none, prompts-kept
    told = _write(sample, seeds=[0])
    _result(told)
    check(told["kept"], "the prompts are changed")
    _result(_write(sample, 0, seeds=[0]), 0)


def test_greedy(sample):
    """At temperature 0 every prompt gets what it gets alone, whatever is in the batch."""
    # keeps: as-alone
    for prompt, row in zip(PROMPTS, _result(_write(sample, temperature=0.0)), strict=True):
        same(row, _greedy(prompt, 5), f"the greedy result for {prompt}")


def test_chance(sample):
    """The same generator gives the same text, another one another; torch's global generator is not touched."""
    # keeps: reproducible, global-untouched
    told = _write(sample, 8, seeds=[1, 1, 2, 3], weights=_weights(0.4))
    check(told["error"] is None, f"sample raises a {(told['error'] or ['?'])[0]}")
    first, second, *others = told["results"]
    check(first == second, "two generators with the same seed give different texts: some chance comes from elsewhere")
    check(any(first != other for other in others), "generators with other seeds give the same text")
    check(told["untouched"], "torch's global generator has moved: all chance comes from `generator`")
    one, two = run_beside(from_one_generator, sample, _weights(0.4), PROMPTS, 8, 5, 2)
    check(one != two, "a second call with the same generator, which has moved on, gives the same text")


def test_distribution(sample):
    """The first token is drawn from next_probabilities of the model's last logits: 3,000 draws."""
    # keeps: distribution
    weights, prompt = _weights(0.6), [3, 1]
    right = echo(weights)(torch.tensor([prompt]))[0, -1].softmax(-1).detach()
    told = _write(sample, 1, [prompt] * 3000, [4], weights)
    shares = torch.bincount(torch.tensor([row[-1] for row in _result(told, 1, [prompt] * 3000)]), minlength=V) / 3000
    gap = float((shares - right).abs().max())
    check(gap < 0.07, f"of 3,000 draws a token comes in a share that is {gap:.2f} from its probability")
    bent = torch.softmax(echo(weights)(torch.tensor([prompt]))[0, -1].detach() / 0.5, -1)
    bent = bent.where(bent >= bent.topk(4).values[-1], 0.0)
    likeliest = bent.argsort(descending=True)
    kept = likeliest[: int((bent[likeliest].cumsum(0) < 0.7 * bent.sum()).sum()) + 1]
    wanted = torch.zeros_like(bent).scatter(0, kept, bent[kept] / bent[kept].sum())
    told = _write(sample, 1, [prompt] * 2000, [6], weights, temperature=0.5, top_k=4, top_p=0.7)
    drawn = torch.bincount(torch.tensor([row[-1] for row in _result(told, 1, [prompt] * 2000)]), minlength=V) / 2000
    gap = float((drawn - wanted).abs().max())
    check(
        gap < 0.08,
        f"with temperature=0.5, top_k=4 and top_p=0.7 a token comes in a share that is {gap:.2f} from its probability: "
        "are all three handed on to next_probabilities, once?",
    )
    for row in _result(_write(sample, 4, seeds=[5], top_k=1), 4):
        check(
            row in [_greedy(prompt, 4) for prompt in PROMPTS],
            "with top_k=1 there is no choice, and the text is another",
        )


def test_calls(sample):
    """Counted: n + 1 calls at most for all prompts together, and after the first one token per prompt."""
    # keeps: calls, one-token
    for prompts in (PROMPTS, PROMPTS[:1]):
        told = _write(sample, 6, prompts, temperature=0.0)
        _result(told, 6, prompts)
        calls = told["calls"]
        check(
            len(calls) <= 7, f"{len(calls)} calls of the model for 6 tokens and {len(prompts)} prompts; 7 are allowed"
        )
        late = [shape for shape in calls[1:] if shape[1] != 1]
        check(
            not late,
            f"after the first call the model gets {late[0][1] if late else 1} tokens per prompt at once, not one",
        )


def test_mode(sample):
    """Evaluation mode and no gradients inside; afterwards the mode is as before, after an error too."""
    # keeps: eval-inside, mode-back, mode-after-error
    for training in (True, False):
        told = _write(sample, training=training, dropout=0.5, temperature=0.0)
        _result(told)
        check(not told["trained"], "the model is called in training mode")
        check(not told["recorded"], "gradients are recorded while writing")
        check(told["training"] is training, f"a model with training={training} comes back with training={not training}")
        broken = _write(sample, prompts=[[1, 2], [V + 5]], training=training, dropout=0.5)
        check(broken["error"] is not None, "a token that the model does not know raises no error")
        check(broken["training"] is training, "after an error the model is not in the mode in which it came")


def test_no_room(sample):
    """Longest prompt + n above max_len is a ValueError before any call; exactly max_len is fine."""
    # keeps: too-long
    told = _write(sample, MAX - 5, temperature=0.0)
    check(
        told["error"] is not None and "ValueError" in told["error"],
        f"6 + {MAX - 5} tokens with max_len = {MAX} must raise a ValueError",
    )
    check(not told["calls"], "the ValueError comes after the model was called")
    _result(_write(sample, MAX - 6, temperature=0.0), MAX - 6)


def probe_greedy(sample):
    return _write(sample, temperature=0.0)["results"]


def probe_greedy_alone(sample):
    return _write(sample, prompts=PROMPTS[:1], temperature=0.0)["results"]


def probe_greedy_longest(sample):
    return [row[-5:] for row in _write(sample, temperature=0.0)["results"][0]][2]


def probe_top_k_1(sample):
    return _write(sample, seeds=[0], top_k=1)["results"]


def probe_calls(sample):
    return _write(sample, 6, temperature=0.0)["calls"]


def probe_number_of_calls(sample):
    return len(_write(sample, 6, temperature=0.0)["calls"])


def probe_modes(sample):
    return [
        [str(told[key]) for key in ("trained", "recorded", "training")]
        for told in (
            _write(sample, training=True, dropout=0.5, temperature=0.0),
            _write(sample, training=False, temperature=0.0),
        )
    ]


def probe_mode_after_an_error(sample):
    return _write(sample, prompts=[[1, 2], [V + 5]], training=True, dropout=0.5)["training"]


def probe_too_long(sample):
    told = _write(sample, MAX - 5, temperature=0.0)
    return [str(told["error"] and "ValueError" in told["error"]), len(told["calls"])]


def probe_exactly_full(sample):
    return str(_write(sample, MAX - 6, temperature=0.0)["error"] is None)


def probe_nothing(sample):
    return _write(sample, 0, seeds=[0])["results"]


def probe_types(sample):
    told = _write(sample, seeds=[0])
    return sorted({type(token).__name__ for row in told["results"][0] for token in row})


def probe_lengths(sample):
    return [len(row) for row in _write(sample, seeds=[0])["results"][0]]


def probe_prompts_kept(sample):
    return _write(sample, temperature=0.0)["kept"]


def probe_chance(sample):
    told = _write(sample, 8, seeds=[1, 1, 2])
    first, second, third = told["results"]
    return [first == second, first == third, told["untouched"]]


def probe_one_generator(sample):
    one, two = run_beside(from_one_generator, sample, _weights(), PROMPTS, 8, 5, 2)
    return one == two


def _shares(sample, **options):
    """Shares of the first token in coarse steps."""
    told = _write(sample, 1, [[3, 1]] * 3000, [4], _weights(0.6), **options)
    counts = torch.bincount(torch.tensor([row[-1] for row in told["results"][0]]), minlength=V)
    return [str(round(float(count) / 3000 / 0.15)) for count in counts]


def probe_shares(sample):
    return _shares(sample)


def probe_shares_cold(sample):
    return _shares(sample, temperature=0.3)


def probe_shares_top_k(sample):
    return [str(share != "0") for share in _shares(sample, top_k=2)]


def probe_shares_top_p(sample):
    return [str(share != "0") for share in _shares(sample, top_p=0.5)]


def probe_rows_differ(sample):
    told = _write(sample, 6, [[3, 1]] * 30, [4], _weights(0.6))
    return len({tuple(row) for row in told["results"][0]}) > 1


def probe_steps_differ(sample):
    """Whether the same draw is made at every step: with flat probabilities all new tokens would be one."""
    flat = {name: 0 * value for name, value in _weights().items()}
    told = _write(sample, 8, [[3, 1]] * 20, [4], flat)
    return any(len(set(row[2:])) > 1 for row in told["results"][0])


def _kinds_drawn(sample, **options):
    """How many different first tokens come in 400 draws from an even model, and how many different second ones."""
    rows = _write(sample, 2, [[3, 1]] * 400, [6], _weights(0.0), **options)["results"][0]
    return len({row[2] for row in rows}), len({row[3] for row in rows})


def probe_kinds_drawn(sample):
    return _kinds_drawn(sample)


def probe_kinds_with_top_k(sample):
    return _kinds_drawn(sample, top_k=3)


def probe_kinds_with_top_p(sample):
    return _kinds_drawn(sample, top_p=0.5)


def probe_cold_share(sample):
    """How often the likeliest token comes at temperature 0.5, in tenths."""
    weights, prompt = _weights(0.6), [3, 1]
    best = int(echo(weights)(torch.tensor([prompt]))[0, -1].argmax())
    rows = _write(sample, 1, [prompt] * 1500, [4], weights, temperature=0.5)["results"][0]
    return round(10 * sum(row[-1] == best for row in rows) / 1500)
