# %% bert-itself-trained
"""You train bert itself: after the call its weights are others. Take a copy."""
replace("copy.deepcopy(bert).requires_grad_(True)", "bert.requires_grad_(True)")

# %% only-the-head
"""Only the head is trained, the encoder stays as it was. Fine-tuning trains all of it."""
replace("model.parameters(), lr=rate", "model.head.parameters(), lr=rate")

# %% frozen-copy
"""Where bert's parameters are frozen your copy is frozen as well, and only the head learns. Set requires_grad on the copy."""
replace(".requires_grad_(True)", "")

# %% padding-read
"""The mask does not reach the encoder: what stands in padding moves the logits."""
replace("self.bert.encode(ids, segments, key_padding_mask)", "self.bert.encode(ids, segments)")

# %% mean-over-padding
"""Your read-out is a mean over all places, padded ones too, so the amount of padding moves the logits. Take the first token, or a
mean over real tokens."""
replace("key_padding_mask)[:, 0])", "key_padding_mask).mean(1))")

# %% training-mode
"""The classifier comes back in training mode. Return it in evaluation mode."""
replace("return model.eval()", "return model")

# %% seed-ignored
"""Two calls with the same seed give two classifiers: the seed is not used."""
replace("torch.manual_seed(seed)", "torch.seed()")

# %% from-scratch
"""Your classifier starts from fresh weights: nothing of what bert has learned is used."""
replace("self.bert = copy.deepcopy(bert).requires_grad_(True)", """self.bert = copy.deepcopy(bert).requires_grad_(True)
        for p in self.bert.parameters():
            nn.init.normal_(p, std=0.02) if p.ndim > 1 else None""")
