# %% padding-on-the-right price=0.35
"""The longest prompt is right, the others are not: they are filled up on the right, so their last column is padding."""
replace("[[0] * (longest - len(row)) + list(row) for row in prompts]", "[list(row) + [0] * (longest - len(row)) for row in prompts]")
replace("[[i < longest - len(row) for i in range(longest)] for row in prompts]", "[[i >= len(row) for i in range(longest)] for row in prompts]")

# %% no-mask price=0.35
"""Shorter prompts get another text than alone: the model is not told what is padding."""
replace("model(new, padding, cache)", "model(new, None, cache)")

# %% mask-upside-down price=0.35
"""Your mask says True for real tokens. True = padding."""
replace("[[i < longest - len(row) for i in range(longest)] for row in prompts]", "[[i >= longest - len(row) for i in range(longest)] for row in prompts]")
replace("F.pad(padding, (0, 1))", "F.pad(padding, (0, 1), value=True)")

# %% everything-again price=0.3
"""The texts are right and nothing is saved: the whole text goes through the model for each new token. With a cache it
gets the new ones alone."""
replace("model(new, padding, cache)", "model(new, padding)")
replace("new = torch.multinomial(p, 1, generator=generator).to(device)  # [B, 1]",
        "drawn = torch.multinomial(p, 1, generator=generator).to(device)\n                new = torch.cat([new, drawn], 1)")
replace("new[:, 0].tolist()", "drawn[:, 0].tolist()")

# %% prompt-by-prompt price=0.35
"""Each prompt is written alone, so there are as many calls as prompts times tokens. All of them go into one batch."""
def sample(model, prompts, n, temperature=1.0, top_k=None, top_p=None, generator=None):
    if max(map(len, prompts)) + n > model.max_len:
        raise ValueError("too long")
    was, device, rows = model.training, next(model.parameters()).device, []
    model.eval()
    try:
        with torch.no_grad():
            for prompt in prompts:
                row, cache = list(prompt), model.new_cache()
                new = torch.tensor([row], device=device)
                for _ in range(n):
                    p = next_probabilities(model(new, None, cache)[:, -1], temperature, top_k, top_p)
                    new = torch.multinomial(p, 1, generator=generator)
                    row.append(int(new))
                rows.append(row)
    finally:
        model.train(was)
    return rows

# %% prompt-token-by-token price=0.25
"""The prompts are read token by token, which takes a call for each. The first call takes all of them."""
def sample(model, prompts, n, temperature=1.0, top_k=None, top_p=None, generator=None):
    T = max(map(len, prompts))
    if T + n > model.max_len:
        raise ValueError("too long")
    was, device, rows = model.training, next(model.parameters()).device, [list(row) for row in prompts]
    ids = torch.tensor([[0] * (T - len(row)) + row for row in rows], device=device)
    pad = torch.tensor([[i < T - len(row) for i in range(T + n)] for row in rows], device=device)
    model.eval()
    try:
        with torch.no_grad():
            cache = model.new_cache()
            for t in range(T + n - 1 if n else 0):
                logits = model(ids[:, t : t + 1], pad[:, : t + 1], cache)[:, -1]
                if t >= T - 1:
                    new = torch.multinomial(next_probabilities(logits, temperature, top_k, top_p), 1, generator=generator)
                    ids = torch.cat([ids, new], 1)
                    for row, token in zip(rows, new[:, 0].tolist(), strict=True):
                        row.append(token)
    finally:
        model.train(was)
    return rows

# %% chance-from-elsewhere price=0.3
"""The same generator gives different texts, and torch's global generator moves: hand the generator to the draw."""
replace("torch.multinomial(p, 1, generator=generator)", "torch.multinomial(p, 1)")

# %% seeds-torch-itself price=0.2
"""You seed torch's global generator, and whoever uses it elsewhere gets your numbers. Draw from `generator` itself."""
replace("torch.multinomial(p, 1, generator=generator)", "torch.multinomial(p, 1)")
replace("    model.eval()\n", "    if generator is not None:\n        torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))\n    model.eval()\n")

# %% always-greedy price=0.6
"""There is no chance: the likeliest token is taken at every temperature."""
replace("torch.multinomial(p, 1, generator=generator)", "p.argmax(-1, keepdim=True)")

# %% one-draw-for-all price=0.25
"""All prompts share one draw: rows with the same probabilities get the same token. Each needs a draw of its own."""
replace("torch.multinomial(p, 1, generator=generator)",
        "(p.cumsum(-1) < torch.rand((), generator=generator, dtype=p.dtype) * p.sum(-1, keepdim=True)).sum(-1, keepdim=True).clamp(max=p.shape[-1] - 1)")

# %% same-draw-at-every-step price=0.25
"""The generator is set back at every step, so each step draws the same number: tokens of one text are not independent."""
replace("p = next_probabilities(model(new, padding, cache)[:, -1], temperature, top_k, top_p)  # [B, V]",
        "p = next_probabilities(model(new, padding, cache)[:, -1], temperature, top_k, top_p)\n                if generator is not None:\n                    generator.manual_seed(generator.initial_seed())")

# %% settings-forgotten price=0.25
"""top_k and top_p have no effect: hand them on."""
replace("temperature, top_k, top_p)  # [B, V]", "temperature)")

# %% mode-lost-after-an-error price=0.1
"""After an error the model stays in evaluation mode: put the mode back in a `finally`."""
replace("    finally:\n        model.train(was_training)", "    except Exception:\n        raise\n    model.train(was_training)")

# %% mode-not-restored price=0.15
"""The model comes back in evaluation mode, whatever it was: note its mode first, and put it back."""
replace("model.train(was_training)", "pass")

# %% training-mode-inside price=0.25
"""The model writes in training mode, with dropout: switch it to evaluation mode before the first call."""
replace("    model.eval()\n", "")

# %% room-noticed-too-late price=0.15
"""A text that does not fit is noticed by the model, when much of it is written. Look before the first call."""
replace("if longest + n > model.max_len:", "if longest > model.max_len:")

# %% one-short-of-room price=0.1
"""A text of exactly max_len tokens is refused, and it fits."""
replace("if longest + n > model.max_len:", "if longest + n >= model.max_len:")

# %% new-tokens-alone price=0.2
"""The prompts are missing from the result: each text begins with its prompt."""
replace("written, cache = [list(row) for row in prompts]", "written, cache = [[] for row in prompts]")

# %% tensors-for-ints price=0.1
"""The new tokens are tensors, and lists of Python ints are asked for: `tolist()` or `int()`."""
replace("new[:, 0].tolist()", "new[:, 0]")

# %% top-p-forgotten price=0.15
"""top_p has no effect: hand it on."""
replace("temperature, top_k, top_p)  # [B, V]", "temperature, top_k)")

# %% temperature-twice price=0.25
"""The temperature is applied twice: you divide the logits by it and hand it on as well. Once is enough."""
replace("p = next_probabilities(model(new, padding, cache)[:, -1], temperature, top_k, top_p)  # [B, V]",
        "p = next_probabilities(model(new, padding, cache)[:, -1] / (temperature or 1), temperature, top_k, top_p)")

# %% first-token-greedy price=0.3
"""The first new token is always the likeliest one, and chance begins with the second. All of them are drawn."""
replace("new = torch.multinomial(p, 1, generator=generator).to(device)  # [B, 1]",
        "new = (torch.multinomial(p, 1, generator=generator) if new.shape[1] == 1 and len(written[0]) > len(prompts[0]) else p.argmax(-1, keepdim=True)).to(device)")

# %% training-mode-afterwards price=0.1
"""The model is in training mode afterwards, whatever it was. Note its mode first, and put that back."""
replace("model.train(was_training)", "model.train()")

# %% mask-of-the-first-prompt price=0.35
"""The padding of the first prompt is used for all of them. Each row of the mask belongs to its own prompt."""
replace("for i in range(longest)] for row in prompts]", "for i in range(longest)] for row in [prompts[0]] * len(prompts)]")
