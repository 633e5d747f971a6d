# %% gradients-never-cleared
"""The second step on the same batch is not what it should be: the gradients of the first are still there, and
backward adds to them. Clear them in every step."""
replace("optimizer.zero_grad()", "")

# %% cleared-before-the-step price=0.6
"""Nothing changes: you clear the gradients between backward and step, and the optimizer finds none."""
replace("optimizer.zero_grad()", "")
replace("optimizer.step()", """optimizer.zero_grad()
    optimizer.step()""")

# %% not-clipped
"""The gradient that the optimizer sees is not clipped. Scale it down to norm 1 after backward and before the step:
earlier there is nothing to clip yet."""
replace("nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "")

# %% clipped-by-value
"""You clip every entry of the gradient by itself, which bends its direction. It is the norm of the whole gradient
that is clipped."""
replace("nn.utils.clip_grad_norm_", "nn.utils.clip_grad_value_")

# %% loss-after-the-update price=0.2
"""You return the loss of the model after its update. The loss that the gradient was made from is asked for, and it
costs no second pass."""
replace("return loss.item()", """with torch.no_grad():
        loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    return loss.item()""")

# %% tensor-returned price=0.2
"""You return a tensor with its whole graph, so a list of losses keeps every step's activations alive. Return a
float."""
replace("return loss.item()", "return loss")

# %% dropout-off price=0.2
"""You train in evaluation mode, so dropout does nothing: with it, two passes over a batch differ while training."""
replace("model.train()", "model.eval()")

# %% source-padding-dropped
"""The padding of the source is read in training: src_padding never reaches the model."""
replace("model(src, inputs, src_padding)", "model(src, inputs)")

# %% labels-fed-as-inputs
"""You give the decoder the labels, so at each place it sees the word that it is asked for. It reads the inputs."""
replace("model(src, inputs, src_padding)", "model(src, labels, src_padding)")

# %% padding-trained
"""Your loss counts the padded labels, so it depends on how much padding a batch has: pad_id goes unused."""
replace("smoothed_loss(model(src, inputs, src_padding), labels, pad_id)",
        "F.cross_entropy(model(src, inputs, src_padding).flatten(0, 1), labels.flatten(), label_smoothing=0.1)")

# %% fit-trains-nothing
"""fit computes losses and leaves the model as it was: nothing in it makes a step."""
replace("losses.append(train_step(model, batch, optimizer, pad_id))",
        "losses.append(smoothed_loss(model(batch[0], batch[2], batch[1]), batch[3], pad_id).item())")

# %% fit-returns-in-the-loop
"""fit stops after the first batch: its return stands inside the loop."""
replace("bar.show(loss=losses[-1], rate=now)", "return losses")

# %% padding-always-0 price=0.2
"""pad_id goes unused: you look for padding with a number of your own. Where another number stands for padding, your
loss counts it, and leaves out a word."""
replace("""labels, pad_id)
    optimizer""",
        """labels, 0)
    optimizer""")

# %% old-gradients-kept price=0.2
"""Gradients that were there before your step get into it: you clear them only after the step. Clear them before
backward."""
replace("optimizer.zero_grad()", "")
replace("return loss.item()", """optimizer.zero_grad()
    return loss.item()""")

# %% clipped-one-by-one
"""You clip every parameter by itself, so that together they are longer than 1. There is one norm, that of all gradients
together, and one factor."""
replace("nn.utils.clip_grad_norm_(model.parameters(), 1.0)", """for p in model.parameters():
        nn.utils.clip_grad_norm_([p], 1.0)""")

# %% always-divided-by-the-norm
"""You divide the gradient by its norm also where that is below 1, which makes small gradients longer. Clipping leaves
them as they are."""
replace("nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        """norm = torch.sqrt(sum(p.grad.square().sum() for p in model.parameters()))
    for p in model.parameters():
        p.grad /= norm""")

# %% first-group-clipped price=0.2
"""You clip the parameters of the optimizer's first group alone. All parameters of the model have one norm together."""
replace("nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        'nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)')

# %% fit-gives-running-means price=0.2
"""The list that fit gives holds means over the steps so far. Each entry is the loss of its own step."""
replace("    return losses", "    return [sum(losses[: i + 1]) / (i + 1) for i in range(len(losses))]")

# %% epochs-ignored price=0.2
"""fit runs through the batches once, whatever `epochs` says. Loop over them that many times."""
replace("[batch for _ in range(epochs) for batch in batches]", "list(batches)")

# %% start-ignored price=0.2
"""Your steps are counted from 1 in every call of fit, so a run that goes on begins its warm-up again. They count on
from `start`: the first is start + 1."""
replace("enumerate(bar, start + 1)", "enumerate(bar, 1)")

# %% steps-from-start price=0.2
"""Your first step has the number `start`, and with start = 0 the rate of step 0. The first is start + 1."""
replace("enumerate(bar, start + 1)", "enumerate(bar, start)")

# %% rate-ignored price=0.2
"""The argument `rate` goes unused: the schedule is multiplied by it."""
replace("rate * noam_rate(", "noam_rate(")

# %% first-group-scheduled price=0.2
"""You set the rate of the optimizer's first group alone. All `param_groups` get it."""
replace("for group in optimizer.param_groups:", "for group in optimizer.param_groups[:1]:")

# %% warmup-ignored price=0.2
"""The argument `warmup` goes unused: hand it on to noam_rate."""
replace("embedding_dim, warmup)", "embedding_dim, WARMUP)")

# %% betas-of-adam price=0.1
"""Without an optimizer fit takes Adam with Adam's own betas. Hand it `betas=BETAS`."""
replace("torch.optim.Adam(model.parameters(), betas=BETAS)", "torch.optim.Adam(model.parameters())")

# %% source-padding-from-the-ids price=0.3
"""You read the source's padding off its tokens. Padding is where src_padding says: another token may stand there, and
pad_id may be a word of the source."""
replace("model(src, inputs, src_padding)", "model(src, inputs, src == pad_id)")

# %% fit-gives-means-of-epochs price=0.2
"""The list that fit gives has one mean for each epoch. There is one loss for each step."""
replace("    return losses", """    n = max(len(losses) // epochs, 1)
    return [sum(losses[i : i + n]) / n for i in range(0, len(losses), n)]""")
