# %% bert-itself-trained
"""You train bert itself: after the call its weights are others. Take a copy."""
replace("copy.deepcopy(bert).requires_grad_(True)", "bert.requires_grad_(True)")

# %% only-the-head price=0.35
"""Only the head is trained, the encoder stays as it was. Fine-tuning trains all of it."""
replace("model.parameters(), lr=rate", "model.head.parameters(), lr=rate")

# %% frozen-copy price=0.1
"""Where bert's parameters are frozen your copy is frozen as well, and only the head learns. Set requires_grad on the copy."""
replace(".requires_grad_(True)", "")

# %% padding-read price=0.25
"""The mask does not reach the encoder: what stands in padding moves the logits."""
replace("self.bert.encode(ids, segments, key_padding_mask)", "self.bert.encode(ids, segments)")

# %% mean-over-padding price=0.25
"""Your read-out is a mean over all places, padded ones too, so the amount of padding moves the logits. Take the first token, or a
mean over real tokens."""
replace("key_padding_mask)[:, 0])", "key_padding_mask).mean(1))")

# %% training-mode price=0.1
"""The classifier comes back in training mode. Return it in evaluation mode."""
replace("return model.eval()", "return model")

# %% seed-ignored price=0.15
"""Two calls with the same seed give two classifiers: the seed is not used, or it is set when something (the head's start) was drawn
already. Seed torch as the very first thing."""
replace("torch.manual_seed(seed)", "torch.seed()")

# %% from-scratch price=0.6
"""Your classifier starts from fresh weights: nothing of what bert has learned is used."""
replace("self.bert = copy.deepcopy(bert).requires_grad_(True)", """self.bert = copy.deepcopy(bert).requires_grad_(True)
        for p in self.bert.parameters():
            nn.init.normal_(p, std=0.02) if p.ndim > 1 else None""")

# %% steps-as-epochs price=0.15
"""You pass through all examples `steps` times. `steps` counts updates: one batch each."""
replace("for _ in range(steps):\n            rows = torch.randperm(len(labels))[:32].to(labels.device)", "for rows in [part.to(labels.device) for _ in range(steps) for part in torch.randperm(len(labels)).split(32)]:")

# %% segments-are-taken-for-granted price=0.15
"""Where `segments` or the mask is None your loop fails: None has no rows. Take rows of what is there."""
replace("[None if part is None else part[rows] for part in examples]", "[part[rows] for part in examples]")

# %% bert-left-in-evaluation-mode price=0.1
"""`bert` itself is in evaluation mode after the call, whatever it was. Change the mode of the copy."""
replace("    with torch.random.fork_rng():", "    bert.eval()\n    with torch.random.fork_rng():")
