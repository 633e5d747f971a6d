# %% mean-of-batch-accuracies price=0.15
"""You average the accuracies of the batches, so an image in a small last batch counts more than the others. Add up
right answers and images, and divide once at the end."""
replace("right += (answers == labels).sum().item()", "right += (answers == labels).float().mean().item()")
replace("count += len(labels)", "count += 1")

# %% percent price=0.1
"""Your accuracy goes up to 100. The contract's is a share, from 0 to 1."""
replace("return right / count", "return 100 * right / count")

# %% number-of-right-answers price=0.15
"""You return how many answers are right. Divide by the number of images."""
replace("return right / count", "return right")

# %% evaluated-in-training-mode price=0.2
"""You measure the model in training mode, the mode in which training left it: with dropout or batch norm the answers
are other ones. Switch to evaluation mode first."""
replace("model.eval()", "")

# %% gradients-zeroed-before-the-step price=0.6
"""Your model does not learn at all: the gradients are zeroed between `backward` and `step`, so the optimizer sees
nothing but zeros. Zero them before the backward pass."""
replace("optimizer.zero_grad()", "")
replace("optimizer.step()", """optimizer.zero_grad()
        optimizer.step()""")

# %% never-in-training-mode price=0.15
"""A model that arrives in evaluation mode is trained in evaluation mode: no dropout, and batch norm learns no
statistics. Call `train()` yourself, whatever the mode it came in."""
replace("model.train()  # `watch`", "# `watch`")

# %% one-batch-per-epoch price=0.3
"""Your model has seen the first batch of each epoch and nothing else: `next(iter(loader))` begins anew each time. Go
through the whole loader."""
replace("model.train()  # `watch`", """if (step - 1) % len(loader):
            continue
        model.train()  # `watch`""")

# %% parameters-without-defaults price=0.2
"""`train_classifier(model, loader)` fails: your further parameters have no defaults. Whoever calls it knows the model
and the loader only."""
replace("""epochs: int = 1, rate: float = RATE, checkpoint: str | None = None,
    watch: Callable[[int], bool] | None = None,""",
        "epochs: int, rate: float, checkpoint: str | None = None, watch: Callable[[int], bool] | None = None,")

# %% gradients-never-zeroed price=0.25
"""The loss falls a little, then swings and grows: gradients of all steps pile up, because nothing zeroes them. Each
step uses the gradient of its own batch."""
replace("optimizer.zero_grad()", "")

# %% softmax-before-the-loss price=0.25
"""Your loss cannot go below 1.46 with ten classes and the model learns slowly: you give probabilities to a
cross-entropy that takes a softmax itself. Give it the logits."""
replace("F.cross_entropy(model(images), labels)", "F.cross_entropy(torch.softmax(model(images), -1), labels)")

# %% squared-error price=0.3
"""Your loss is a squared error between the logits and one-hot labels. The contract's is the cross-entropy of the logits
with the labels."""
replace("F.cross_entropy(model(images), labels)", "F.mse_loss(model(images), F.one_hot(labels, 10).float())")

# %% one-class-ignored price=0.2
"""Images of class 0 teach your model nothing: `ignore_index=0` takes them out of the loss. Here 0 is a class like any
other."""
replace("F.cross_entropy(model(images), labels)", "F.cross_entropy(model(images), labels, ignore_index=0)")

# %% one-epoch-whatever-is-asked price=0.2
"""You go through the loader once, whatever `epochs` says. Put the loop over the batches inside a loop over the epochs."""
replace("epochs * len(loader), [], 0", "len(loader), [], 0")

# %% evaluation-mode-from-the-second-epoch price=0.15
"""Your first steps are in training mode and later ones are not: something calls `eval()` on the way. Call `train()` again
after it, or in every step."""
replace("model.train()  # `watch` may have left it in evaluation mode", "model.train(step <= len(loader))")

# %% small-last-batch-left-out price=0.1
"""Batches that are smaller than the first are skipped, so some images are never trained on. Use every batch."""
replace("""with autocast_for(device):
            loss""",
        """if len(labels) < len(next(iter(loader))[1]):
            continue
        with autocast_for(device):
            loss""")

# %% every-batch-counted-as-full price=0.15
"""You divide by the number of batches times the size of the first one, and the last batch may be smaller. Add up the
images that were there."""
replace("right = count = 0", "right, sizes = 0, []")
replace("count += len(labels)", "sizes.append(len(labels))")
replace("return right / count", "return right / (len(sizes) * sizes[0])")

# %% evaluated-with-gradients price=0.1
"""Your evaluation keeps track of gradients that nobody asks for, which costs memory and time. Ask the model under
`torch.no_grad()`."""
replace("with torch.no_grad():", "with torch.enable_grad():")

# %% trained-while-evaluating price=0.4
"""Measuring changes the model: you train it on the held-out images first, and then it has seen them. Leave the weights as
they are."""
replace("model.eval()", """train_classifier(model, list(loader))
    model.eval()""")

# %% last-layer-only price=0.35
"""Only the last layer learns: the optimizer has been given a part of the parameters. Give it model.parameters()."""
replace("AdamW(model.parameters(), lr", "AdamW([*model.parameters()][-2:], lr")

# %% first-batch-again-and-again price=0.35
"""Every step sees the same batch, the loader's first. Take a new one for every step."""
replace("""images, labels = to_device(batch, device)
        with""",
        """images, labels = to_device(next(iter(loader)), device)
        with""")

# %% gradients-off-after-evaluation price=0.15
"""`torch.set_grad_enabled(False)` holds until it is undone, and all later training fails. Use `with torch.no_grad():`."""
replace("with torch.no_grad():", """torch.set_grad_enabled(False)
    if True:""")

# %% frozen-by-evaluation price=0.15
"""After your evaluate no parameter wants a gradient any more, and training cannot go on. `torch.no_grad()` is enough."""
replace("with torch.no_grad():", """model.requires_grad_(False)
    if True:""")
