# %% nothing-mended price=1
"""Your model comes back as sick as it went in. Look at it before and after a few steps: which parameters move,
which gradients are zero, what does the attention see?"""
def dead_transformer_fix(model):
    return model

# %% weights-drawn-anew-only price=0.6
"""You draw all weights anew and leave the rest. Good weights are lost, and what is frozen, dropped, blurred or
masked the wrong way is no weight: look at settings and buffers too, and touch only what is sick."""
def dead_transformer_fix(model):
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    return model

# %% everything-drawn-anew price=0.8
"""Your models train, and so they should: nothing is left of the ones that came in, and weights that were good are
gone. Mend what is sick and keep the rest."""
def dead_transformer_fix(model):
    return type(model)()

# %% settings-mended-only price=0.6
"""You mend every setting and leave the weights: some patients have weights or biases from which no training can
start. Look at the values in each layer before the first step."""
replace("isinstance(module, nn.LayerNorm) and not module.weight.any()", "False")
replace("isinstance(module, nn.Linear) and (module.weight == module.weight[0]).all()", "False")
replace("isinstance(module, nn.Linear) and module.bias.max() < -1", "False")

# %% frozen-parts-left price=0.2
"""One patient still learns with its last layer only: its other parameters get no gradient at all. Look at
`requires_grad`."""
replace("model.requires_grad_(True)", "")

# %% mask-always-flipped
"""You turn the mask round whatever it was. That cures the one patient whose mask was wrong, and every other model
now sees nothing but padding. Ask first what is wrong."""
replace("model.padding_is = True", "model.padding_is = not model.padding_is")

# %% mask-left-flipped price=0.2
"""One patient still looks at padding and at nothing else: change a padded token and the logits move, change a
word and they stay. What does the model take for padding?"""
replace("model.padding_is = True", "")

# %% eval-against-dropout price=0.2
"""In training one patient still drops nearly all of each branch: look at the rate of its dropouts. Evaluation mode is
no cure, since the training run switches back: change the rate, not the mode."""
replace("module.p = 0.0", "module.eval()")

# %% positions-left-equal price=0.2
"""One patient still cannot tell one order from another: shuffle the tokens behind the first, and its logits stay
the same. Compare the rows of its positions."""
replace("if (model.positions == model.positions[0]).all():", "if False:")

# %% positions-one-row-for-all
"""You write new positions, and they still say nothing about where a token stands: they are the same for every place,
or the same in every feature, and such a shift is what layer norm takes away."""
replace("sinusoidal_encoding(*model.positions.shape)",
        "torch.randn(model.positions.shape[1]).expand_as(model.positions).clone()")

# %% scale-left-tiny price=0.2
"""One patient's attention still gives every key the same weight, however different queries and keys are: look at
the factor in front of the scores."""
replace("for block in model.blocks:", "for block in []:")

# %% dead-bias-left price=0.2
"""One patient's read-out stays silent: the bias of its hidden layer lies far below zero and keeps every ReLU shut,
and a shut ReLU passes no gradient. New weights alone do not help."""
replace("nn.init.zeros_(module.bias)", "nn.init.xavier_uniform_(module.weight)")

# %% gains-left-zero price=0.2
"""One patient's layer norms still multiply everything by zero: look at the weights of the norms, not only at those
of the linear layers."""
replace("nn.init.ones_(module.weight)", "pass")

# %% equal-weights-made-equal-again
"""You replace equal weights by other equal weights: whatever the number, all units of such a layer compute the same,
get the same gradient and stay the same. Only chance breaks the tie."""
replace("module.reset_parameters()", "nn.init.constant_(module.weight, module.in_features**-0.5)")

# %% first-token-left-alone price=0.2
"""One patient's first token still hears nobody: its attention sees the past alone, and nothing stands before the first
place. Look at what each attention `sees`."""
replace('        block.attn.sees = "all"  # a first token that sees the past alone sees nothing\n', "")

# %% steps-left
"""Two patients' forward passes are still as they came: in one the gradient ends on its way back, in the other the
residual road is gone. Read the `steps` of a block word by word."""
replace('        block.steps = ("keep", "norm1", "attn", "add", "keep", "norm2", "fc1", "relu", "fc2", "add")\n', "")

# %% detach-left price=0.2
"""In one patient every parameter wants a gradient and none reaches the blocks: a step of the forward pass cuts it
off."""
replace('        block.steps = (', '        block.steps = block.steps if "detach" in block.steps else (')

# %% road-left-closed price=0.2
"""In one patient each block replaces a token instead of adding to it: the residual road is gone. Which two words are
missing in its `steps`?"""
replace('        block.steps = (', '        block.steps = block.steps if "add" not in block.steps else (')

# %% post-norm-in-the-steps
"""You write the steps of a block with the norm behind the sum. The healthy model is pre-norm: what was well has
changed."""
replace('("keep", "norm1", "attn", "add", "keep", "norm2", "fc1", "relu", "fc2", "add")',
        '("keep", "attn", "add", "norm1", "keep", "fc1", "relu", "fc2", "add", "norm2")')

# %% nothing-returned
"""You mend the model and return nothing: return the mended model."""
replace("    return model", "")

# %% good-weights-drawn-anew price=0.2
"""You draw a whole layer anew where its bias alone was sick: the weights were good. Mend the bias and keep them."""
replace("model.padding_is = True", """model.padding_is = True
    if model.fc.bias.max() < -1:
        model.fc.reset_parameters()""")
