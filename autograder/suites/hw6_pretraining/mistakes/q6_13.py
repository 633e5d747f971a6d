# %% order-believed price=0.17
"""You let `order_needs_positions` pass. With one layer it is true. But in the second layer each token has heard those
before it, and who those are depends on the order."""
replace('"order_needs_positions": {"x": torch.randn(4, 4, generator=rng), "order": [2, 0, 1], **two_layers},', "")

# %% order-example-has-one-layer price=0.17
"""Your example for `order_needs_positions` does not break the claim. With one layer nothing can: the last token takes a
weighted sum, and a sum has no order. And let the tokens really change places."""
replace("torch.randn(2, 4, 4, generator=rng)", "torch.randn(1, 4, 4, generator=rng)")

# %% loss-believed price=0.17
"""You let `loss_reaches_every_word` pass. Which places have a label? The others are -100, and the loss leaves them out."""
replace('"loss_reaches_every_word": {"logits": torch.zeros(2, 3), "labels": torch.tensor([1, -100])},', "")

# %% loss-example-asks-everywhere price=0.17
"""Your example for `loss_reaches_every_word` has a label at every place, so the claim is true of it. Leave one out."""
replace("torch.tensor([1, -100])", "torch.tensor([1, 2])")

# %% nucleus-believed price=0.17
"""You let `nucleus_keeps_most_words` pass. 90% of what? Of the probability, which may lie on one word out of thousands."""
replace('"nucleus_keeps_most_words": {"probabilities": torch.tensor([0.9, 0.05, 0.05])},', "")

# %% nucleus-example-is-flat price=0.17
"""Your example for `nucleus_keeps_most_words` is so flat that nearly all words are needed. Put the weight on few."""
replace("torch.tensor([0.9, 0.05, 0.05])", "torch.full((10,), 0.1)")

# %% perplexity-believed price=0.17
"""You let `lower_perplexity_knows_better` pass. A letter is easier to guess than a word, and there are more of them: what
does the whole text cost?"""
replace('''"lower_perplexity_knows_better": {
            "perplexity_a": 3.0, "tokens_a": 100, "perplexity_b": 50.0, "tokens_b": 20, "characters": 100,
        },''', "")

# %% perplexity-example-agrees price=0.17
"""Your example for `lower_perplexity_knows_better` has the same tokens for both models, so their perplexities do compare.
Let one read letters and the other words."""
replace('"tokens_b": 20', '"tokens_b": 100')

# %% inference-believed price=0.17
"""You let `neighbours_tell_inference` pass. Where two sentences stand is in the text; whether one follows from the other
is not, and somebody has to say so."""
replace('"neighbours_tell_inference": {"document": [[1, 2], [1], [3]], "i": 0, "j": 1},', "")

# %% places-believed price=0.17
"""You let `same_places_teach_as_much` pass. With masks that stay, 15% of the words are asked for, and the others never.
What do ten epochs with new masks ask for? See the experiment."""
replace('''"same_places_teach_as_much": {
            "fixed": torch.tensor([True, False]), "anew": torch.tensor([[True, False], [False, True]]),
        },''', "")

# %% places-example-draws-once price=0.17
"""Your example for `same_places_teach_as_much` has the same places in every epoch. Let the second epoch choose others."""
replace("[[True, False], [False, True]]", "[[True, False], [True, False]]")

# %% verdicts-without-examples price=0.8
"""You say which claims are false, which is half of the answer. For each false claim give a dict with the arguments of an
example that breaks it."""
def false_claims():
    return {name: False for name in CLAIMS}
