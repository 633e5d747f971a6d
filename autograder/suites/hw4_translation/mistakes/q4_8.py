# %% every-word-at-place-0
"""The first word is right, and later ones are not: every word gets position 0, because it comes alone. It stands
where it stands in the sentence."""
replace("positions[t]", "positions[0]")

# %% places-one-late price=0.2
"""Your words stand one place too far to the right: BOS is at position 0, and the word of step t at position t."""
replace("sinusoidal_encoding(max_len, D)", "sinusoidal_encoding(max_len + 1, D)[1:]")

# %% one-cache-for-all-layers
"""All your layers share one cache, so each reads the others' keys. Every layer needs its own."""
replace("past[i] = tuple(torch.cat(pair, dim=2) for pair in zip(past[i], new, strict=True))",
        "past[0] = tuple(torch.cat(pair, dim=2) for pair in zip(past[0], new, strict=True))")
replace("_look(layer.self_attn, h, *past[i])", "_look(layer.self_attn, h, *past[0])")

# %% keys-of-raw-x
"""Your cache holds the keys and values of x. In pre-norm they are made of norm1(x), like the query."""
replace("_keys_and_values(layer.self_attn, h)", "_keys_and_values(layer.self_attn, x)")

# %% memory-not-masked
"""More padding behind a sentence changes its translation: src_padding is missing in the cross-attention."""
replace("*sources[i], src_padding)", "*sources[i])")

# %% memory-keys-of-one-layer
"""All your layers look at the memory through the keys of the first. Each layer has projections of its own."""
replace("sources[i]", "sources[0]")

# %% everything-computed-again price=0.8
"""The words are right and nothing is saved: all words so far go through the decoder in every step. Only the newest
should."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)
    written = src.new_full((len(src), 1), bos_id)
    for _ in range(max_len):
        token = model.decode(written, memory, src_padding)[:, -1:].argmax(-1)
        written = torch.cat([written, token], dim=1)
        if (written[:, 1:] == eos_id).any(1).all():
            break
    return [row[: row.index(eos_id)] if eos_id in row else row for row in written[:, 1:].tolist()]

# %% encoder-in-every-step price=0.3
"""The words are right, but the encoder runs in every step. The source does not change while you write."""
replace("x = model.tgt_embed(token)", """memory = model.encode(src, src_padding)
        sources = [_keys_and_values(layer.cross_attn, memory) for layer in model.decoder_layers]
        x = model.tgt_embed(token)""")

# %% stops-at-the-first-eos-of-the-batch
"""Sentences are cut short when they are decoded together: your loop stops as soon as one of them has ended."""
replace("ended.all()", "ended.any()")

# %% decoder-norm-forgotten price=0.3
"""Already the first word is wrong: the logits are made from the last layer's output as it is. decoder_norm comes
first."""
replace("model.decoder_norm(x)", "x")

# %% norm1-forgotten
"""Already the first word is wrong: query, key and value are made of x as it is. In pre-norm all three are made of
norm1(x)."""
replace("h = layer.norm1(x)", "h = x")

# %% embedding-not-scaled
"""Already the first word is wrong: the embedding goes in without the factor sqrt(D)."""
replace("model.tgt_embed(token) * math.sqrt(D)", "model.tgt_embed(token)")

# %% cross-attention-without-o-proj
"""Already the first word is wrong: the heads of the cross-attention are added as they are. `o_proj` comes first, as
in the self-attention."""
replace("_look(layer.cross_attn, layer.norm2(x), *sources[i], src_padding)", """merge_heads(attention(
                split_heads(layer.cross_attn.q_proj(layer.norm2(x)), layer.cross_attn.n_heads), *sources[i], src_padding
            )[0])""")

# %% norms-swapped
"""Already the first word is wrong: norm2 and norm3 have changed places. norm2 belongs to the cross-attention, norm3
to the feed-forward layer."""
replace("layer.norm2(x)", "layer.norm3(x) ")
replace("layer.ff(layer.norm3(x))", "layer.ff(layer.norm2(x))")

# %% only-the-newest-word-seen
"""The first word is right, and later ones are not: a new word sees itself alone. The keys and values before it stay
in the cache and are looked at too."""
replace("past[i] = tuple(torch.cat(pair, dim=2) for pair in zip(past[i], new, strict=True))", "past[i] = new")

# %% mask-needed price=0.2
"""Your function fails without a mask. None for src_padding means that nothing is padding: hand it on as it is."""
replace("memory = model.encode(src, src_padding)", "memory = model.encode(src, src_padding.bool())")

# %% eos-kept price=0.3
"""Your sentences end with EOS. The result has the tokens before it."""
replace("row.index(eos_id)]", "row.index(eos_id) + 1]")
